"""The parts of a value that JSON can't hold: where they are, and what would do in their place."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from pydantic_core import to_jsonable_python

from dimos_streams.common.json.reading import is_finite

_HERE = "\0without a form"
"""What stands in the place of a part without a JSON form while it is looked for."""


def lost_numbers(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the numbers that JSON does not have, as text, each with its path. ``value`` is JSON data but for them."""
    if is_finite(value):  # nearly all are, and the walk with paths takes twenty times as long
        return
    for path, part in _parts(value):
        if not is_finite(part):
            yield path, _shown(part)


def fault_in(value: Any) -> str:
    """Return where in a value the first part is that has no JSON form, and what would do, in words behind the fault;
    empty if there is nothing to say."""
    parts: list[Any] = []

    def note(part: Any) -> str:
        parts.append(part)
        return _HERE

    try:
        plain = to_jsonable_python(value, fallback=note)
    except ValueError:  # the fault is another one
        return ""
    if not parts:
        return "".join(f" ({path}: {number})" for path, number in islice(lost_numbers(plain), 1))
    path = next((path for path, part in _parts(plain) if part == _HERE), "")
    return f"{f' (at {path})' if path else ''}{_advice(parts[0])}"


def _advice(part: Any) -> str:
    if inspect.isawaitable(part):
        return ", which nobody has awaited: put `await` before it"
    return ", whose tolist() would do" if callable(getattr(type(part), "tolist", None)) else ""


def _parts(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what lists and objects hold that is neither, each with its path."""
    if isinstance(value, Mapping):
        parts: Iterable[tuple[Any, Any]] = value.items()
    elif isinstance(value, list | tuple):
        parts = enumerate(value)
    else:
        yield path, value
        return
    for name, part in parts:
        yield from _parts(part, f"{path}.{name}" if path else str(name))


def _shown(number: Any) -> str:
    try:
        return repr(number)
    except ValueError:
        return "number of so many digits"
