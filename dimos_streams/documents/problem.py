"""Problems of a blueprint or a file that it names, one line for each thing that is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic_core import ErrorDetails

from dimos_streams.common.invalid import what_is_wrong, where_it_is
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.secrets import masked, telling_name
from dimos_streams.errors import UserError

_MUST_BE = "it must be "


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. ``str()`` gives the line to show."""

    text: str
    where: str = ""
    """``"file:line"``, ``"environment VARIABLE"``, ``"command line"``, or empty if unknown."""
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        kind = "warning: " if self.severity == "warning" else ""
        return f"{self.where}: {kind}{self.text}" if self.where else f"{kind}{self.text}"


class BlueprintError(UserError):
    """A blueprint, or a file that it names, can't be used. The text has one line for each of ``problems``."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(dict.fromkeys(problems))  # a file may be included twice
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self) -> tuple[type[BlueprintError], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)


def problems_of(error: UserError, where: str) -> tuple[Problem, ...]:
    """The problems that an error stands for; one that does not know its place yet is at ``where``."""
    if isinstance(error, BlueprintError):
        return tuple(p if p.where else Problem(p.text, where, p.severity) for p in error.problems)
    return (Problem(str(error), where),)


def errors_among(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems with which nothing can run."""
    return [problem for problem in problems if problem.severity == "error"]


def placed(detail: ErrorDetails, data: Any) -> ErrorDetails:
    """Return the error with the path that leads through ``data``: pydantic's has a union's members in it."""
    path: list[int | str] = []
    for part in detail["loc"]:
        if isinstance(data, Mapping):
            if part in data:
                data = data[part]
            elif not (detail["type"].startswith("missing") and part == detail["loc"][-1]) and part != "[key]":
                continue
        elif isinstance(data, Sequence) and not isinstance(data, str) and isinstance(part, int):
            data = data[part] if part < len(data) else None
        else:
            continue
        path.append(part)
    return {**detail, "loc": tuple(path)}


def either(wanted: Sequence[str]) -> str:
    """Return in one text what a value of several possible kinds must be; empty if these are no texts of kinds."""
    if len(wanted) < 2 or not all(each.startswith(_MUST_BE) for each in wanted):
        return ""
    *others, last = dict.fromkeys(each.removeprefix(_MUST_BE) for each in wanted)
    return f"{_MUST_BE}{', '.join(others)} or {last}" if others else wanted[0]


def fault(detail: ErrorDetails, wrong: str = "") -> str:
    """Return one of pydantic's errors as a line: which value, what is wrong with it, in its words or in those of
    ``wrong``, what was given."""
    text = repr(masked(detail["input"], telling_name(detail["loc"])))
    given = shortened(text, 80)
    place, wrong = where_it_is(detail, ""), wrong or what_is_wrong(detail)
    return f"{place}: {wrong} (given: {given})" if place else f"{wrong} (given: {given})"
