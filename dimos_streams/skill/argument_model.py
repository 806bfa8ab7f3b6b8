"""The model of a skill's arguments, which gives their schema and checks them."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, PydanticUserError, ValidationError, create_model
from pydantic_core import SchemaError

from dimos_streams.common.invalid import in_a_line, problems_with_values, with_values
from dimos_streams.common.schemas.plain import plain_schema
from dimos_streams.documents.fields import fields_at
from dimos_streams.errors import SkillArgumentError

M = TypeVar("M", bound=BaseModel)
_CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False, validate_default=True)
"""The rules for a skill's arguments; a default is taken as if it had been given."""


def argument_model(where: str, name: str, fields: Mapping[str, Any]) -> type[BaseModel]:
    """The model of a skill's arguments. Raises ``TypeError`` for what has no schema, and for a default that does not
    fit."""
    try:
        model: type[BaseModel] = create_model(name, __config__=_CONFIG, **fields)
        plain_schema(model)
    except ValueError as error:  # of our own, which says what it is about
        raise TypeError(f"{where}: its schema can't be written out: {error}") from error
    except (PydanticUserError, SchemaError) as error:
        bad = next((each for each, field in fields.items() if not _has_schema(each, field)), None)
        which = "its arguments have" if bad is None else f"the type of {bad!r}, {_named(fields[bad][0])}, has"
        raise TypeError(f"{where}: {which} no schema; {_schema_rule(error)}") from error
    _check_defaults(where, model, fields)
    return model


def checked_arguments(model: type[M], name: str, arguments: Mapping[str, Any]) -> M:
    """The arguments for the skill or tool of a name, as its model takes them. Raises ``SkillArgumentError``, which
    names each bad one."""
    try:
        return model.model_validate(dict(arguments))
    except ValidationError as error:
        problems = problems_with_values(error, "arguments", lambda path: fields_at(model, path))
        raise SkillArgumentError(name, problems) from error


def _schema_rule(error: PydanticUserError | SchemaError) -> str:
    if isinstance(error, PydanticUserError) and error.code == "typed-dict-version":
        return "before Python 3.12 a TypedDict is to be that of typing_extensions"
    return "valid are those that pydantic can write out as JSON schema, such as numbers, texts, lists and models"


def _has_schema(name: str, field: Any) -> bool:
    try:
        plain_schema(create_model("Argument", __config__=_CONFIG, **{name: field}))
    except (ValueError, PydanticUserError, SchemaError):
        return False
    return True


def _named(hint: Any) -> str:
    return hint.__qualname__ if isinstance(hint, type) else str(hint)


def _check_defaults(where: str, model: type[BaseModel], fields: Mapping[str, Any]) -> None:
    """Raise ``TypeError`` for a default that the skill would refuse if somebody gave it."""
    optional = {name: field for name, field in fields.items() if not field[1].is_required()}
    if not optional:
        return
    given = _plain_values(optional)
    plain = model
    if len(given) < len(optional):
        plain = create_model("Given", __config__=_CONFIG, **{name: optional[name] for name in given})
    wrong: dict[str, str] = {}
    as_sent = functools.partial(
        plain.model_validate_json, json.dumps(given), strict=True, by_alias=False, by_name=True
    )
    for accept in (as_sent, model):
        try:
            accept()
        except ValidationError as error:
            wrong |= with_values(filter(_is_of_default, error.errors()), "the defaults")
        except Exception as error:  # of an author's own check of a value
            raise TypeError(f"{where}: a check of its defaults fails ({type(error).__name__}: {error})") from error
    if wrong:
        empty = [name for name, field in optional.items() if name in wrong and field[1].default is None]
        remedy = "".join(f"; `{name}: {_named(fields[name][0])} | None` would take None" for name in empty)
        raise TypeError(f"{where} has a default that it would refuse: {in_a_line(wrong)}{remedy}")


def _is_of_default(detail: Mapping[str, Any]) -> bool:
    """Return whether one of pydantic's errors is about a default, rather than about a required argument."""
    return detail["type"] != "missing" or len(detail["loc"]) > 1


def _plain_values(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults that a caller could give as they stand. Python would make a number of the text "5", and the schema
    that callers see refuses it; a whole number may be written 5.0."""
    given = {name: field[1].default for name, field in fields.items()}
    plain = {name: value for name, value in given.items() if type(value) in (str, bool, int, float)}
    return {name: int(each) if type(each) is float and each.is_integer() else each for name, each in plain.items()}
