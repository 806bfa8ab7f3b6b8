"""The check of arguments of the functions that make blueprints. Its errors tell authors what is valid."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

from pydantic import PydanticUserError, SecretBytes, SecretStr, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.common.invalid import in_a_line, problems_with_values
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.readable.spelling import misspelt
from dimos_streams.common.secrets import redacted
from dimos_streams.errors import UserError, did_you_mean, suggest
from dimos_streams.module import Module

P = ParamSpec("P")
R = TypeVar("R")
_ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)
_SHOWN = 60
"""Maximum length of a value in an error, in characters."""


def with_checked_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function, which raises ``UserError`` for unknown arguments, and for arguments that are not the text,
    list or dict that they should be: errors of Python and pydantic would be about our code."""
    signature = inspect.signature(function)
    hints = typing.get_type_hints(function)
    called = f"{function.__name__}(…)"

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise UserError(_misfit(called, list(signature.parameters), kwargs, str(error))) from error
        for name, value in given.items():
            if signature.parameters[name].kind not in (
                inspect.Parameter.VAR_POSITIONAL,
                inspect.Parameter.VAR_KEYWORD,
            ):
                _check_kind(called, name, hints[name], value)
        try:
            return function(*args, **kwargs)
        except ValidationError as error:
            raise UserError(f"{called}: {in_a_line(problems_with_values(error, 'it'))}") from error

    return checked


def _misfit(called: str, names: list[str], given: Mapping[str, Any], why: str) -> str:
    """Return the text about arguments that a function does not have, or lacks."""
    unknown = next((name for name in given if name not in names), None)
    if unknown is None:
        return f"{called}: {why} (its arguments: {', '.join(names)})"
    return f"{called} has no argument {unknown!r}{suggest(unknown, names)} (valid: {', '.join(names)})"


def _check_kind(called: str, name: str, hint: Any, value: object) -> None:
    """Raise ``UserError`` for what is no text, no list of texts or no dict where the hint of an argument is one."""
    kinds = [typing.get_origin(kind) or kind for kind in typing.get_args(hint)]
    kinds = kinds if type(None) in kinds else [typing.get_origin(hint) or hint]
    if type(None) in kinds and value is None:
        return
    if str in kinds and not isinstance(value, str):
        raise UserError(f"{called}: {name} must be a text, and is {shown(value)}")
    if Mapping in kinds and not isinstance(value, Mapping):
        raise UserError(f'{called}: {name} must be a dict, as {name}={{"NAME": …}}, and is {shown(value)}')
    if Iterable in kinds or tuple in kinds:
        check_texts(called, name, value)


def check_texts(called: str, name: str, given: object) -> None:
    """Raise ``UserError`` unless an argument gives several texts; a single one would count as its letters."""
    if isinstance(given, str):
        raise UserError(f"{called}: {name} is one text, where several are meant: ({given!r},)")
    texts = given if isinstance(given, Collection) else ()
    bad = next((each for each in texts if not isinstance(each, str)), None)
    if bad is not None or not isinstance(given, Iterable):
        raise UserError(f"{called}: {name} must be a list of texts, and is {shown(given)}")


def check_parts(name: str, parts: Iterable[object]) -> None:
    """Raise ``UserError`` for what can be no part of a blueprint, with what would be one."""
    for number, part in enumerate(parts, start=1):
        if not isinstance(part, ModuleSpec | Blueprint):
            text = f"part {number} of blueprint {name!r} is {shown(part)}: a part is include(…) or module(…)"
            raise UserError(f"{text}{_meant_part(part)}")


def _meant_part(part: object) -> str:
    match part:
        case str():
            return f", as include({part!r})"
        case type() if issubclass(part, Module):
            return f", as module({part.__name__})"
        case list() | tuple():
            return ", and each is an argument of its own"
    return ""


def check_blueprint(other: object, taker: str) -> None:
    """Raise ``UserError``, which names who takes it, for what is neither a blueprint nor a reference to one."""
    if not isinstance(other, Blueprint | str):
        valid = "a Blueprint, the name of a stock one, a file's path as text, or 'package.module:ATTRIBUTE'"
        raise UserError(f"{taker} takes {valid}, and not {shown(other)}")


def check_replacements(replace: Mapping[str, object]) -> None:
    """Raise ``UserError`` for what is no module in the place of another one."""
    for name, given in replace.items():
        if not isinstance(given, ModuleSpec):
            raise UserError(f"include(…): what replaces {name!r} is module(…), and not {shown(given)}")


def check_class(cls: object) -> None:
    """Raise ``UserError`` for what is neither a class nor a reference to one."""
    if not isinstance(cls, type | str):
        remedy = f": module({type(cls).__name__}, …)" if isinstance(cls, Module) else ""
        text = f"a module is given by its class, or as 'package.module:Class', and not by {shown(cls)}"
        raise UserError(f"{text}{remedy}")


def check_settings(cls: type[Module] | str, settings: Iterable[str], arguments: Iterable[str]) -> None:
    """Raise ``UserError`` for a setting that a class does not have and that is a misspelt argument of ``module``."""
    for name in settings:
        if (near := misspelt(name, arguments)) and not _has_setting(cls, name):
            raise UserError(
                f"module(…) has no argument {name!r}, and {shown(cls)} no such setting{did_you_mean(near)}"
            )


def _has_setting(cls: type[Module] | str, name: str) -> bool:
    """Return whether a class has a setting, as far as that is known without importing anything."""
    try:
        return isinstance(cls, str) or name in cls.config_type().model_fields
    except (
        TypeError,
        AttributeError,
        NameError,
        PydanticUserError,
    ):  # it is no Module, or not declared as one should be
        return True


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as plain data. Raises ``UserError`` for one that can't be, and for what are no settings."""
    if not isinstance(values, Mapping):
        raise UserError(
            f"settings are values by their names, as {{'follow.distance_m': 1.2}}, and not {shown(values)}"
        )
    return {name: _plain(name, value) for name, value in values.items()}


def _plain(name: str, value: Any) -> Any:
    try:
        return to_jsonable_python(_revealed(_ANYTHING.dump_python(value)))
    except (PydanticSerializationError, ValueError) as error:
        text = f"setting {name!r} is {shown(value)}: settings are plain data: texts, numbers, lists, dicts, models"
        raise UserError(text) from error


def _revealed(value: Any) -> Any:
    """Return data with the values of secrets, which as JSON are asterisks."""
    match value:
        case SecretStr() | SecretBytes():
            return value.get_secret_value()
        case dict():
            return {key: _revealed(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return list(map(_revealed, value))
    return value


def shown(value: object) -> str:
    """Return a value as its author knows it."""
    match value:
        case Blueprint():
            return f"the blueprint {value.name!r}"
        case ModuleSpec():
            return f"the module {value.name!r}"
        case Module():
            return f"an instance of {type(value).__name__}"
        case type():
            return f"the class {value.__name__}"
        case FunctionType():
            return f"the function {value.__name__}"
        case list() | tuple():
            return shortened(f"[{', '.join(map(shown, value))}]", _SHOWN)
    return shortened(redacted(repr(value)), _SHOWN)
