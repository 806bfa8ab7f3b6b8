"""Groups of options: dataclasses whose fields are options of a command, or groups. Typer knows single ones only."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard, get_type_hints

_BY_NAME = inspect.Parameter.KEYWORD_ONLY


def ungrouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command as typer takes it: a parameter whose type is a dataclass becomes one for each field of it, in
    its place, and the command is called with what is made of them."""
    signature = inspect.signature(command, eval_str=True)
    groups = {name: each.annotation for name, each in signature.parameters.items() if _is_group(each.annotation)}
    if not groups:
        return command

    @functools.wraps(command)
    def take(**given: Any) -> None:
        made = {name: _make(group, given) for name, group in groups.items()}
        command(**given, **made)

    parameters = [each for parameter in signature.parameters.values() for each in _apart(parameter)]
    vars(take)["__signature__"] = signature.replace(parameters=parameters)
    return take


def _is_group(annotation: Any) -> TypeGuard[type]:
    return dataclasses.is_dataclass(annotation)


def _make(group: type, given: dict[str, Any]) -> Any:
    """Return a group made of the values of its options, which are taken out of those that are given."""
    types = get_type_hints(group)
    return group(
        **{name: _make(types[name], given) if _is_group(types[name]) else given.pop(name) for name in _names(group)}
    )


def _names(group: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(group)]


def _apart(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    group = parameter.annotation
    if not _is_group(group):
        yield parameter.replace(kind=_BY_NAME)
        return
    hints = get_type_hints(group, include_extras=True)
    for field in dataclasses.fields(group):
        default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
        yield from _apart(inspect.Parameter(field.name, _BY_NAME, default=default, annotation=hints[field.name]))
