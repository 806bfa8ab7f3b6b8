"""Says what is wrong with an argument by its schema, in the words that settings have for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from dimos_streams.common.readable.listed import listed
from dimos_streams.common.readable.plural import plural
from dimos_streams.common.readable.shortening import shortened

_KINDS = {
    "null": "null",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "array": "a list",
    "object": "an object",
}
_BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "const": "{}",
}
_SIZES = {
    "minLength": ("at least", "character"),
    "maxLength": ("at most", "character"),
    "minItems": ("at least", "item"),
    "maxItems": ("at most", "item"),
}
_MUST_BE = "it must be "
_MAX_WRONG, _MAX_GIVEN = 200, 80
"""Maximum lengths, in characters, of what is said of a value, and of the value itself."""


def fault(error: Any) -> str:
    """Return what one of the validator's errors says, and the value that was given; its own text has that already."""
    wrong = _wrong(error)
    return shortened(wrong, _MAX_WRONG) if wrong == error.message else _with_value([wrong], error.instance)


def fault_of_options(errors: Iterable[Any], types: Iterable[str], value: object) -> str:
    """Return what is wrong with a value that fits none of several schemas: what they want, or of which types."""
    within = [(".".join(map(str, error.relative_path)), _wrong(error)) for error in errors]
    wrong = [f"{path}: {text}" if path else text for path, text in within]
    return _with_value([*wrong, *(f"{_MUST_BE}{_kind(name)}" for name in types)], value)


def _wrong(error: Any) -> str:
    keyword, wanted = error.validator, error.validator_value
    if keyword == "type":
        return _MUST_BE + listed([_kind(name) for name in ([wanted] if isinstance(wanted, str) else wanted)], "or")
    if keyword == "enum" and wanted:
        return _MUST_BE + listed([_shown(each) for each in wanted], "or")
    if keyword in _BOUNDS:
        return _MUST_BE + _BOUNDS[keyword].format(_shown(wanted))
    if keyword in _SIZES:
        return f"it must have {_size(keyword, wanted)}"
    return str(error.message)


def limits(schema: Mapping[str, Any]) -> list[str]:
    """Return what a schema wants of a value besides its type, in the words that faults have for it."""
    bounds = [text.format(_shown(schema[keyword])) for keyword, text in _BOUNDS.items() if keyword in schema]
    return [*bounds, *(_size(keyword, schema[keyword]) for keyword in _SIZES if keyword in schema)]


def _size(keyword: str, wanted: int) -> str:
    bound, part = _SIZES[keyword]
    return f"{bound} {plural(wanted, part)}"


def _shown(value: object) -> str:
    """Return a value as it is written in JSON, or a text as all messages quote one."""
    return repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)


def _kind(name: str) -> str:
    """Return the word for one of JSON Schema's types."""
    return _KINDS.get(name, name)


def _with_value(wrong: Iterable[str], value: object) -> str:
    texts = list(dict.fromkeys(wrong))
    if all(text.startswith(_MUST_BE) for text in texts):
        texts = [_MUST_BE + listed([text.removeprefix(_MUST_BE) for text in texts], "or")]
    return f"{shortened('; or '.join(texts), _MAX_WRONG)} (given: {shortened(_shown(value), _MAX_GIVEN)})"
