"""Elements of a page. Whatever text goes in comes out as text: nothing here writes markup by hand."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeAlias
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from dimos_streams.common.printable import printable_lines
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.readable.surrogates import well_formed

_LONGEST = 4000
"""Maximum length of a text, in characters, so that no single one makes a page of any size."""
_DRAWN = frozenset({"d", "points"})
"""Attributes with what is computed here: numbers, as many as a drawing has."""

Node: TypeAlias = "Element | str | Iterable[Node] | None"


def h(tag: str, *children: Node, **attributes: str | float | None) -> Element:
    """An element. ``class_`` is the attribute ``class``, ``stroke_width`` is ``stroke-width``; None is left out."""
    found = Element(tag)
    for name, value in attributes.items():
        if value is not None:
            found.set(name.rstrip("_").replace("_", "-"), _attribute(name, value))
    _append(found, children)
    return found


def _attribute(name: str, value: str | float) -> str:
    if isinstance(value, float):
        return number(value)
    return value if name in _DRAWN and isinstance(value, str) else shown(value)


def with_attributes(element: Element, attributes: dict[str, str]) -> Element:
    """The element itself, with attributes whose names no keyword can have: ``viewBox``."""
    for name, value in attributes.items():
        element.set(name, value)
    return element


def document(root: Element) -> str:
    """The whole text of a page."""
    return "<!doctype html>\n" + ElementTree.tostring(root, encoding="unicode", method="html") + "\n"


def number(value: float) -> str:
    """A number as short as drawings need it: two decimals at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if math.isfinite(value) and round(value, 2) else "0"


def shown(value: object) -> str:
    """Text as it is shown: without secrets, and with controls and marks that reorder text as escapes.
    Of what is longer than people read, only the beginning."""
    return cut(printable_lines(well_formed(str(value))), _LONGEST)


def cut(text: str, length: int) -> str:
    """Return at most ``length`` characters of a text, the last one an ellipsis if something is left out."""
    return shortened(text, length, "…")


def _append(parent: Element, children: Iterable[Node]) -> None:
    for child in children:
        if child is None:
            continue
        if isinstance(child, Element):
            parent.append(child)
        elif isinstance(child, str):
            _append_text(parent, shown(child))
        else:
            _append(parent, child)


def _append_text(parent: Element, text: str) -> None:
    if len(parent):
        parent[-1].tail = (parent[-1].tail or "") + text
    else:
        parent.text = (parent.text or "") + text
