"""JSON text for others: whatever a value has in it, readers take it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import (
    PydanticSerializationError,
    SchemaSerializer,
    core_schema,
    from_json,
    to_json,
    to_jsonable_python,
)

from dimos_streams.common.json.losses import fault_in
from dimos_streams.common.json.reading import repaired
from dimos_streams.common.readable.surrogates import well_formed
from dimos_streams.common.secrets import has_secret, redacted_data
from dimos_streams.errors import SkillError

_JSON_RULE = "valid: texts, numbers, True, False, None, lists, dicts, dataclasses and pydantic models"

_LARGE_DIGITS = 309
"""Number of digits from which on a whole number may be beyond all that a float can be, which readers refuse."""
_OBJECTS = SchemaSerializer(core_schema.any_schema())
"""Makes dicts of models and dataclasses, and leaves all else as it is."""
_DIGITS, _LARGE = b"0123456789", b"0" * _LARGE_DIGITS
_AS_ZEROS = bytes.maketrans(_DIGITS, b"0" * len(_DIGITS))


def json_text(value: Any) -> str:
    """Return compact JSON; pydantic models and dataclasses become objects, NaN and what no float can be become null,
    and text is repaired.

    Raises ``SkillError`` for values that have no JSON form.
    """
    return json_bytes(value).decode()


def json_bytes(value: Any) -> bytes:
    """Return the text of ``json_text`` in UTF-8. Raises as it does."""
    try:
        encoded = to_json(value, inf_nan_mode="null")
        if not _may_have_large_number(encoded):
            return encoded
    except PydanticSerializationError:
        pass  # because of half a character, or of more
    try:
        return to_json(repaired(_data_of(value)), inf_nan_mode="null")
    except ValueError as error:  # pydantic's, and its plain one for what contains itself or is too deep
        raise _without_form(value, error) from error


def plain_data(value: Any) -> Any:
    """Return a value as JSON data, but with all its numbers, also those that JSON does not have, and with its text as
    it is, but for names with half a character, which are repaired. Raises as ``json_text`` does."""
    try:
        return _data_of(value)
    except ValueError as error:
        raise _without_form(value, error) from error


def _data_of(value: Any) -> Any:
    """Return a value as JSON data. pydantic refuses half a character in a name, but not elsewhere. Raises
    ``ValueError``."""
    try:
        return to_jsonable_python(value)
    except UnicodeEncodeError:
        return to_jsonable_python(_with_whole_names(_OBJECTS.to_python(value)))


def _with_whole_names(value: Any) -> Any:
    if isinstance(value, Mapping):
        names = (well_formed(name) if isinstance(name, str) else name for name in value)
        return dict(zip(names, map(_with_whole_names, value.values()), strict=True))
    return [_with_whole_names(part) for part in value] if isinstance(value, list | tuple) else value


def _without_form(value: Any, error: ValueError) -> SkillError:
    return SkillError(f"not JSON: {error}{fault_in(value)}; {_JSON_RULE}")


def _may_have_large_number(encoded: bytes) -> bool:
    """Return whether JSON has so long a row of digits that readers may refuse the number. Then there is a digit at
    one of the steps of that length: text is not looked through for it, which would take longer than all else."""
    steps = encoded[_LARGE_DIGITS - 1 :: _LARGE_DIGITS]
    return len(steps.translate(None, _DIGITS)) < len(steps) and _LARGE in encoded.translate(_AS_ZEROS)


def json_without_secrets(value: Any) -> bytes:
    """Return ``json_bytes`` of a value with ``[redacted]`` in place of each secret of this process. Raises as it
    does."""
    encoded = json_bytes(value)
    return json_bytes(redacted_data(from_json(encoded))) if has_secret(encoded.decode()) else encoded
