"""Patterns of arguments in rules: a value, a text with ``*`` or ``?``, or comparisons with numbers."""

from __future__ import annotations

import fnmatch
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dimos_streams.agent.policies.canonical import canonical
from dimos_streams.common.readable.comparable_text import comparable

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_COMPARISON = re.compile(r"(<=|>=|!=|<|>)\s*([^\s<>=!]+)")
_ALL_COMPARISONS = re.compile(rf"(?:\s*{_COMPARISON.pattern})+\s*")
_BEGINS_AS_COMPARISON = re.compile(r"\s*[<>=!]")


def checked_pattern(pattern: Any) -> Any:
    """Return a pattern, for pydantic. Raises ``ValueError`` for a text that begins like a comparison and is none, and
    for a comparison inside of an object or a list: it would fit no number, and its rule would never count."""
    for path, value in _values_in(pattern):
        if isinstance(value, str) and _bounds(value):
            if path is None:
                raise ValueError(f"a list is compared as a whole: {value!r} in it is no comparison with numbers")
            raise ValueError(f"an object is compared as a whole; write 'ARGUMENT.{path}': {value!r} instead")
    if isinstance(pattern, str) and _BEGINS_AS_COMPARISON.match(pattern) and not _bounds(pattern):
        raise ValueError(
            f"{pattern!r} is no comparison with numbers, such as '>2', '!=0' or '>=-1 <=1'; a text that begins with"
            f" {pattern.strip()[0]!r} has it in brackets: {f'[{pattern.strip()[0]}]{pattern.strip()[1:]}'!r}"
        )
    return pattern


def _values_in(pattern: Any) -> Iterator[tuple[str | None, Any]]:
    """Yield the values in a pattern that is an object or a list, each with its path, or None for what is in a list,
    of which no rule can name a part."""
    if isinstance(pattern, list):
        for value in pattern:
            yield None, value
            yield from ((None, part) for _, part in _values_in(value))
    elif isinstance(pattern, Mapping):
        for name, value in pattern.items():
            yield name, value
            yield from ((path and f"{name}.{path}", part) for path, part in _values_in(value))


def fits(pattern: Any, value: Any) -> bool:
    """Return whether a value, as JSON has it, fits a pattern."""
    if not isinstance(pattern, str):
        return canonical({"": pattern}) == canonical({"": value})
    bounds = _bounds(pattern)
    if bounds:
        return is_number(value) and all(compare(value, bound) for compare, bound in bounds)
    text = comparable(value) if isinstance(value, str) else canonical({"": value})[4:-1]
    return fnmatch.fnmatchcase(text, comparable(pattern))


def may_fit(pattern: Any, value: Any) -> bool:
    """Return whether a value fits a pattern, or does so for skills which read texts as numbers."""
    return fits(pattern, value) or _may_equal(pattern, value)


def _may_equal(one: Any, another: Any) -> bool:
    if isinstance(one, Mapping) and isinstance(another, Mapping):
        return one.keys() == another.keys() and all(_may_equal(one[name], another[name]) for name in one)
    if isinstance(one, list) and isinstance(another, list):
        return len(one) == len(another) and all(map(_may_equal, one, another))
    return canonical({"": one}) == canonical({"": another}) or _are_same_number(one, another)


def _are_same_number(*values: Any) -> bool:
    one, another = (number_in(str(value) if is_number(value) else value) for value in values)
    return is_number(one) and is_number(another) and one == another


def compares_numbers(pattern: Any) -> bool:
    """Return whether a pattern consists of comparisons."""
    return isinstance(pattern, str) and bool(_bounds(pattern))


def is_number(value: Any) -> bool:
    """Return whether a value is a number of JSON."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def number_in(value: Any) -> Any:
    """Return the number that a text is, as skills read it which take numbers as texts, too (``Decimal``); any other
    value as it is."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _bounds(pattern: str) -> list[tuple[Callable[[Any, Any], bool], float]]:
    """The comparisons that a pattern consists of, all of which must hold; empty for a text."""
    if not _ALL_COMPARISONS.fullmatch(pattern):
        return []
    try:
        return [(_COMPARISONS[sign], float(bound)) for sign, bound in _COMPARISON.findall(pattern)]
    except ValueError:
        return []
