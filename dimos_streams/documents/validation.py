"""A document as a pydantic model, or its faults with their lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dimos_streams.documents.document import Document
from dimos_streams.documents.fields import fields_at
from dimos_streams.documents.problem import BlueprintError, Problem, fault, placed
from dimos_streams.errors import suggest

M = TypeVar("M", bound=BaseModel)
Naming = Callable[[Sequence[str | int]], str]
"""A function that says in words what a path leads to."""


def validated(document: Document, model: type[M], called: Naming, at: Sequence[str | int] = ()) -> M:
    """The document as a model, or what is ``at`` a path of it; an empty one counts as an empty mapping. Raises
    ``BlueprintError`` with a line for each fault."""
    data = _part(document, at)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problems = [_problem(document, model, called, placed(detail, data), at) for detail in error.errors()]
        raise BlueprintError(problems) from error


def usable(
    document: Document, model: type[M], called: Naming, at: Sequence[str | int] = ()
) -> tuple[M, dict[str, list[Problem]]]:
    """The document as a model, or what is ``at`` a path of it, without the keys that are wrong, and what is wrong
    with these. Raises ``BlueprintError`` for what has no keys, and where one that is wrong can't be left out."""
    data = _part(document, at)
    if not isinstance(data, dict):
        return validated(document, model, called, at), {}
    try:
        return model.model_validate(data), {}
    except ValidationError as error:
        faults: dict[str, list[Problem]] = {}
        for detail in error.errors():
            problem = _problem(document, model, called, placed(detail, data), at)
            faults.setdefault(str(detail["loc"][0]), []).append(problem)
    try:
        return model.model_validate({key: value for key, value in data.items() if key not in faults}), faults
    except ValidationError as error:
        raise BlueprintError([problem for found in faults.values() for problem in found]) from error


def _part(document: Document, at: Sequence[str | int]) -> Any:
    data = document.data
    for part in at:
        data = data[part]
    return {} if data is None and not at else data


def _problem(
    document: Document,
    model: type[BaseModel],
    called: Naming,
    detail: ErrorDetails,
    at: Sequence[str | int] = (),
) -> Problem:
    """The line for a fault, whose place is one inside of what is ``at`` a path."""
    *inside, last = [part for part in detail["loc"] if part != "[key]"] or [""]
    around = (*at, *inside)
    where = document.where((*around, last))
    if detail["type"] == "extra_forbidden":
        near = suggest(str(last), fields_at(model, list(map(str, inside))))
        return Problem(f"unknown key {last!r} in {called(around)}{near}", where)
    if detail["type"] == "missing":
        return Problem(f"{called(around)} needs the key {last!r}", where)
    return Problem(fault({**detail, "loc": (*at, *detail["loc"])}), where)
