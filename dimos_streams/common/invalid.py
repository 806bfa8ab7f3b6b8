"""Faults that pydantic finds in what came from outside, in texts for people."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.secrets import redacted
from dimos_streams.errors import suggest

if TYPE_CHECKING:
    from pydantic import ValidationError

NamesAt = Callable[[Sequence[str | int]], Iterable[str]]
_NO_FIELDS = ("model_type", "model_attributes_type", "dataclass_type")
"""Faults whose text names one of our classes, which says nothing to the sender of the value."""
_MAX_PATH = 200
"""Maximum length of a path, in characters: names of fields come from outside, too."""
_MOST = 20
"""Maximum number of problems that are told of one value, which may have thousands of fields that nobody takes."""
_FURTHER = "…"
"""The path under which is said how many more there are."""
NO_SUCH_NAME = "there is nothing of this name"
"""The beginning of what is said of a field that nobody takes."""
_OBJECT = "it must be an object, names with their values"
_WORDS = (
    (r"Field required|Missing required .*", "it is missing"),
    (r"Extra inputs are not permitted|Unexpected keyword argument", NO_SUCH_NAME),
    (r"Input should be a valid (dictionary|mapping)\b.*", _OBJECT),
    (r"Input should be a valid integer\b.*", "it must be a whole number"),
    (r"Unable to parse input string as an integer\b.*", "it must be a whole number, and a smaller one"),
    (r"Input should be a valid number\b.*", "it must be a number"),
    (r"Input should be a finite number\b.*", "it must be a finite number"),
    (r"Input should be a valid boolean\b.*", "it must be true or false"),
    (r"Input should be a valid string\b.*", "it must be a text"),
    (r"Input should be a valid (?:list|tuple|set|frozenset)\b.*", "it must be a list"),
    (r"Input should be greater than or equal to (.*)", r"it must be at least \1"),
    (r"Input should be less than or equal to (.*)", r"it must be at most \1"),
    (r"Input should be greater than (.*)", r"it must be more than \1"),
    (r"Unable to extract tag using discriminator ('\w+')", r"it has no \1, which says what it is"),
    (r"Input tag (.*) found using ('\w+') does not match any of the expected tags: (.*)", r"\2 is \1; valid: \3"),
    (r"\w+ should have (.*?)(?: after validation)?(, not .*)?", r"it must have \1\2"),
    (r"\w+ should (.*)", r"it must \1"),
)
"""Pydantic's texts, and what is said instead: of what was given as people know it, not of the library's input."""


def what_is_wrong(detail: Mapping[str, Any]) -> str:
    """The text of one of pydantic's errors: where a check of ours has refused a value, that text alone."""
    text = str(detail["msg"])
    if detail["type"] in ("value_error", "assertion_error"):
        return text.partition(", ")[2]
    if detail["type"] in _NO_FIELDS:
        return _OBJECT
    for pattern, words in _WORDS:
        if (found := re.fullmatch(pattern, text)) is not None:
            return found.expand(words)
    return text


def where_it_is(detail: Mapping[str, Any], whole: str) -> str:
    """The path to what one of pydantic's errors is about; ``whole`` if it is about everything."""
    return shortened(redacted(".".join(map(str, detail["loc"]))), _MAX_PATH) or whole


def problems_with_values(error: ValidationError, whole: str, valid: NamesAt | None = None) -> dict[str, str]:
    """The fault at each path, and the value that was given there; ``whole`` stands for everything. Of many the first
    ones, and how many more there are. ``valid`` returns the names that there are at a path."""
    return with_values(error.errors(), whole, valid)


def with_values(details: Iterable[Mapping[str, Any]], whole: str, valid: NamesAt | None = None) -> dict[str, str]:
    """The fault at each path, and the value that was given there, of errors as ``ValidationError.errors`` lists them;
    ``whole`` and ``valid`` are as for ``problems_with_values``."""
    problems = {}
    own = _of_their_own(details)
    for detail in own[:_MOST]:
        path = where_it_is(detail, whole)
        given = "" if detail["type"] == "missing" else f" (given: {_short(detail['input'])})"
        wrong = what_is_wrong(detail)
        if valid is not None and wrong == NO_SUCH_NAME and (names := list(valid(detail["loc"][:-1]))):
            listed = f"valid: {', '.join(names)}"
            near = suggest(str(detail["loc"][-1]), names)
            wrong += f"{near} ({listed})" if near else f"; {listed}"
        problems[path] = f"{wrong}{given}"
    if len(own) > _MOST:
        problems[_FURTHER] = f"{len(own) - _MOST} more problems"
    return problems


def is_at(error: ValidationError, path: tuple[str, ...]) -> bool:
    """Return whether anything is wrong at a path, or inside it."""
    return any(tuple(map(str, detail["loc"]))[: len(path)] == path for detail in error.errors())


def first_problem(error: ValidationError, whole: str) -> str:
    """The first thing that is wrong, and where; ``whole`` stands for everything."""
    detail = error.errors(include_url=False)[0]
    return f"{where_it_is(detail, whole)}: {what_is_wrong(detail)}"


def problem_of(error: Exception, whole: str) -> str:
    """The first problem if pydantic has found one, else the text of the error."""
    from pydantic import ValidationError

    return first_problem(error, whole) if isinstance(error, ValidationError) else str(error)


def in_a_line(problems: Mapping[str, str]) -> str:
    """Problems by path, in one line."""
    return "; ".join(f"{where}: {what}" for where, what in problems.items())


def _of_their_own(details: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The errors without those that only follow from others: pydantic calls a tuple too short, too, whose items it
    has left out because something is wrong with them."""
    return [detail for detail in details if not (detail["type"] == "too_short" and _is_long_enough(detail))]


def _is_long_enough(detail: Mapping[str, Any]) -> bool:
    limits = detail["ctx"]
    return bool(limits["field_type"] == "Tuple" and len(detail["input"]) >= limits["min_length"])


def _short(value: Any) -> str:
    return shortened(redacted(repr(value)), 80)  # half a secret is not recognised any more
