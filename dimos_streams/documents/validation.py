"""A document as a pydantic model, or its faults with their lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dimos_streams.common.invalid import what_is_wrong
from dimos_streams.documents.document import Document
from dimos_streams.documents.fields import fields_at
from dimos_streams.documents.problem import BlueprintError, Problem, either, fault, placed
from dimos_streams.errors import suggest

M = TypeVar("M", bound=BaseModel)
Naming = Callable[[Sequence[str | int]], str]
"""A function that says in words what a path leads to."""
Path = Sequence[str | int]

_NAME = re.compile(r"[\w./ -]{1,80}")
"""The keys that are shown: in a file that is another than was meant, as one of passwords, they may be anything."""


def validated(
    document: Document, model: type[M], called: Naming, at: Path = (), *, shown: Callable[[Path], Path] = tuple
) -> M:
    """The document as a model, or what is ``at`` a path of it; an empty one counts as an empty mapping. Raises
    ``BlueprintError`` with a line for each fault, which names its path as it is to be ``shown``."""
    data = _part(document, at)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        details = [placed(detail, data) for detail in error.errors()]
        raise BlueprintError(_problems(document, model, called, details, at, shown)) from error


def usable(document: Document, model: type[M], called: Naming, at: Path = ()) -> tuple[M, dict[str, list[Problem]]]:
    """The document as a model, or what is ``at`` a path of it, without what is wrong: a key, or an entry of one that
    holds several. And what is wrong, by the key. Raises ``BlueprintError`` for what has no keys, and where what is
    wrong can't be left out."""
    data = _part(document, at)
    if not isinstance(data, dict):
        return validated(document, model, called, at), {}
    try:
        return model.model_validate(data), {}
    except ValidationError as error:
        by_key: dict[str, list[ErrorDetails]] = {}
        for detail in error.errors():
            by_key.setdefault(str(detail["loc"][0]), []).append(placed(detail, data))
        faults = {key: list(_problems(document, model, called, details, at)) for key, details in by_key.items()}
        bad = {tuple(detail["loc"][:2]) for details in by_key.values() for detail in details}
    try:
        return model.model_validate(_left(data, bad)), faults
    except ValidationError as error:
        raise BlueprintError([problem for found in faults.values() for problem in found]) from error


def _left(data: dict[str, Any], bad: Collection[Path]) -> dict[str, Any]:
    """Return a mapping without its bad keys, and without the bad entries of the others."""
    left: dict[str, Any] = {}
    for key, value in data.items():
        if (key,) in bad:
            continue
        if isinstance(value, list):
            value = [entry for index, entry in enumerate(value) if (key, index) not in bad]
        elif isinstance(value, dict):
            value = {name: entry for name, entry in value.items() if (key, name) not in bad}
        elif any(path[0] == key for path in bad):
            continue
        left[key] = value
    return left


def _part(document: Document, at: Sequence[str | int]) -> Any:
    data = document.data
    for part in at:
        data = data[part]
    return {} if data is None and not at else data


def _problems(
    document: Document,
    model: type[BaseModel],
    called: Naming,
    details: Iterable[ErrorDetails],
    at: Path,
    shown: Callable[[Path], Path] = tuple,
) -> Iterator[Problem]:
    """Yield a problem for each thing that is wrong; what a value might be instead is one, not one for each kind."""
    by_place: dict[tuple[int | str, ...], list[ErrorDetails]] = {}
    for detail in details:
        by_place.setdefault(detail["loc"], []).append(detail)
    for found in by_place.values():
        if wrong := either([what_is_wrong(detail) for detail in found]):
            yield _problem(document, model, called, found[0], at, shown, wrong)
        else:
            yield from (_problem(document, model, called, detail, at, shown) for detail in found)


def _kind_of(value: Any) -> str:
    return "a list" if isinstance(value, list) else "a text" if isinstance(value, str) else "a single value"


def _problem(
    document: Document,
    model: type[BaseModel],
    called: Naming,
    detail: ErrorDetails,
    at: Path,
    shown: Callable[[Path], Path],
    wrong: str = "",
) -> Problem:
    """The line for a fault, whose place is one inside of what is ``at`` a path; in the words of ``wrong`` if there
    are any."""
    *inside, last = [part for part in detail["loc"] if part != "[key]"] or [""]
    around = (*at, *inside)
    where = document.where((*around, last))
    if not around and not last:  # it may be another file than was meant: nothing of it is shown
        return Problem(f"{wrong or what_is_wrong(detail)}, and is {_kind_of(detail['input'])}", where)
    if detail["type"] == "extra_forbidden":
        near = suggest(str(last), fields_at(model, list(map(str, inside))))
        named = f"unknown key {last!r}" if _NAME.fullmatch(str(last)) else "a key that is no name"
        return Problem(f"{named} in {called(around)}{near}", where)
    if detail["type"] == "missing":
        return Problem(f"{called(around)} needs the key {last!r}", where)
    return Problem(fault({**detail, "loc": tuple(shown((*at, *detail["loc"])))}, wrong), where)
