"""Ids of which the beginning is enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def find_abbreviated(
    start: str, things: Iterable[T], id_of: Callable[[T], str], prefer: Callable[[T], bool] = lambda thing: True
) -> list[T]:
    """Return the things that an id or its beginning may mean: those with the whole id, or else those whose ids begin
    so, of these the ones to ``prefer`` if there are any. An empty text means none, as every id begins so."""
    found = [each for each in things if start and id_of(each).startswith(start)]
    return [each for each in found if id_of(each) == start] or [*filter(prefer, found)] or found
