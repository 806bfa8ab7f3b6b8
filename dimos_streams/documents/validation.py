"""A document as a pydantic model, or its faults with their lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dimos_streams.documents.document import Document
from dimos_streams.documents.fields import fields_at
from dimos_streams.documents.problem import BlueprintError, Problem, fault, placed
from dimos_streams.errors import suggest

M = TypeVar("M", bound=BaseModel)
Naming = Callable[[Sequence[str | int]], str]
"""A function that says in words what a path leads to."""


def validated(document: Document, model: type[M], called: Naming) -> M:
    """The document as a model; an empty one counts as an empty mapping. Raises ``BlueprintError`` with a line for
    each fault."""
    if document.data is None:
        document = replace(document, data={})
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        problems = [_problem(document, model, called, detail) for detail in error.errors()]
        raise BlueprintError(problems) from error


def _problem(document: Document, model: type[BaseModel], called: Naming, detail: ErrorDetails) -> Problem:
    detail = placed(detail, document.data)
    *around, last = [part for part in detail["loc"] if part != "[key]"] or [""]
    where = document.where((*around, last))
    if detail["type"] == "extra_forbidden":
        near = suggest(str(last), fields_at(model, list(map(str, around))))
        return Problem(f"unknown key {last!r} in {called(around)}{near}", where)
    if detail["type"] == "missing":
        return Problem(f"{called(around)} needs the key {last!r}", where)
    return Problem(fault(detail), where)
