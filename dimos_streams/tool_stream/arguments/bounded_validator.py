"""A validator of JSON Schema for schemas from outside: it counts its steps, and runs nobody's regular expressions.

Python's ``re`` may take an hour for forty characters, and JSON Schema's expressions are of another dialect. So what
an expression demands is left to the module that has the skill, and what may follow from one is never held against
arguments: a ``not`` around an expression, say, forbids nothing here. ``unevaluated…`` is left to it likewise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError
from jsonschema_specifications import REGISTRY

from dimos_streams.tool_stream.arguments.steps import CHARACTERS_PER_STEP, limited_steps, spend

_REFERENCE_STEPS = 3
_ROUNDED = 4
"""The units in the last place of a number by which it may miss a multiple: neither 0.3 nor 0.1 is a float."""
_EXPRESSIONS = frozenset({"pattern", "patternProperties"})
_NEVER = ("pattern", "patternProperties", "unevaluatedProperties", "unevaluatedItems")
_MAY_FOLLOW = ("not", "if", "contains")
"""Keywords that may turn a demand that was left out into its opposite."""
_Keyword = Callable[[Any, Any, Any, Any], Any]


def errors_of(schema: dict[str, Any], arguments: Mapping[str, Any]) -> list[ValidationError]:
    """Return the errors of the arguments. Raises ``TooManyStepsError``, and whatever comes of an invalid schema."""
    kind: Any = _Lenient if _has_expressions(schema) else _Strict
    with limited_steps():
        # Without a registry, a reference in a schema from outside would be fetched from wherever it says.
        return list(kind(schema, registry=REGISTRY).iter_errors(dict(arguments)))


def _has_expressions(schema: object) -> bool:
    """Return whether a schema may have expressions, also behind references. A name that only looks like one counts,
    too: then arguments are let through, not refused."""
    if isinstance(schema, dict):
        return not _EXPRESSIONS.isdisjoint(schema) or any(map(_has_expressions, schema.values()))
    return isinstance(schema, list) and any(map(_has_expressions, schema))


def _size(value: object) -> int:
    return len(value) if isinstance(value, list | dict) else 0


def _counted(keyword: _Keyword) -> _Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        spend(1 + _size(value) + _size(instance))
        for error in keyword(validator, value, instance, schema) or ():
            spend(1 + len(error.message) // CHARACTERS_PER_STEP)  # they show the instance, each anew
            yield error

    return check


def _reference(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
    spend(_REFERENCE_STEPS)
    return Draft202012Validator.VALIDATORS["$ref"](validator, value, instance, schema)


def _enum(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    wanted = _key(instance)
    if all(_key(each) != wanted for each in value):
        yield ValidationError(f"{instance!r} is not one of {value!r}")


def _const(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if _key(value) != _key(instance):
        yield ValidationError(f"{value!r} was expected")


def _unique(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if value and isinstance(instance, list) and len({_key(each) for each in instance}) < len(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")


def _key(value: object) -> str:
    """Return a text that is the same for values that JSON Schema calls equal: 1 and 1.0, but not 1 and true."""
    spend(1)
    if isinstance(value, Mapping):
        return f"{{{','.join(sorted(f'{name!r}:{_key(part)}' for name, part in value.items()))}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_key, value))}]"
    return repr(int(value)) if isinstance(value, float) and value.is_integer() else repr(value)


def _multiple(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, bool) or not isinstance(instance, int | float):
        return
    if isinstance(instance, int) and isinstance(value, int):
        misses = instance % value != 0
    else:
        misses = abs(math.remainder(instance, value)) > _ROUNDED * math.ulp(instance)
    if misses:
        yield ValidationError(f"{instance!r} is not a multiple of {value!r}")


def _items(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
    """Check the items of a list. Raises ``TypeError`` for the form that earlier versions of JSON Schema have."""
    if isinstance(value, list):
        raise TypeError("`items` is a list, which is called `prefixItems` there")
    return Draft202012Validator.VALIDATORS["items"](validator, value, instance, schema)


def _additional(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
    """Check additional properties in their order: jsonschema goes through a set of them, in another order in each
    process. One that an expression might have allowed is not additional."""
    if "patternProperties" in schema:
        return ()
    if isinstance(value, dict) and isinstance(instance, dict):
        known = schema.get("properties", {})
        additional = ((name, part) for name, part in instance.items() if name not in known)
        return (error for name, part in additional for error in validator.descend(part, value, path=name))
    return Draft202012Validator.VALIDATORS["additionalProperties"](validator, value, instance, schema)


def _nothing(validator: Any, value: Any, instance: Any, schema: Any) -> tuple[()]:
    return ()


def _bounded(kind: Any) -> Any:
    """Return a class of validators that stay of it in every part of a schema: jsonschema chooses another one, which
    counts nothing and runs expressions, for a part with a ``$schema`` of its own."""
    evolve = kind.evolve

    def of_same_kind(validator: Any, **changes: Any) -> Any:
        schema = changes.get("schema", validator.schema)
        if isinstance(schema, Mapping) and "$schema" in schema:
            changes["schema"] = {name: part for name, part in schema.items() if name != "$schema"}
        return evolve(validator, **changes)

    kind.evolve = of_same_kind
    return kind


_OURS: dict[str, _Keyword] = {
    "$ref": _reference,
    "enum": _enum,
    "const": _const,
    "uniqueItems": _unique,
    "multipleOf": _multiple,
    "items": _items,
    "additionalProperties": _additional,
    **dict.fromkeys(_NEVER, _nothing),
}
_ALL = {name: _counted(keyword) for name, keyword in {**Draft202012Validator.VALIDATORS, **_OURS}.items()}
_extended: Any = validators.extend
_Strict = _bounded(_extended(Draft202012Validator, _ALL))
_Lenient = _bounded(_extended(_Strict, {"oneOf": _ALL["anyOf"], **dict.fromkeys(_MAY_FOLLOW, _counted(_nothing))}))
