"""Calls that belong to another call: that call's skill runs them as its own, and they end with it.

The id of such a *child* is its parent's with ``CHILD`` and a number behind it, so that whoever hears of nothing but
the child knows whose it is. A *continuation*, which ``SkillClient.start`` begins, is a call of its own: its id has a
dot there.
"""

from __future__ import annotations

import re

CHILD = "~"
"""The separator between the id of a call and the number of its child."""
CONTINUATION = "."
"""The separator between the id of a call and the number of its continuation."""
MAX_DEPTH = 8
"""Maximum number of calls that may run each other, one below the other, under the one that nobody runs."""
_CHILD = re.compile(rf"(.+){re.escape(CHILD)}[0-9]+")
_ASKED = re.compile(rf"(.+)[{re.escape(CHILD + CONTINUATION)}][0-9]+")


def child_id(parent: str, number: int) -> str:
    """Return the id of the child of that number, which counts from 1."""
    return f"{parent}{CHILD}{number}"


def continuation_id(asking: str, number: int) -> str:
    """Return the id of the continuation of that number, which counts from 1, together with children."""
    return f"{asking}{CONTINUATION}{number}"


def asked_by(call_id: str) -> str:
    """Return the call whose skill asks for a call, as a child or a continuation; empty if no skill asks for it."""
    found = _ASKED.fullmatch(call_id)
    return found[1] if found else ""


def parent_of(call_id: str) -> str:
    """Return the call that a call belongs to; empty if it belongs to none."""
    found = _CHILD.fullmatch(call_id)
    return found[1] if found else ""


def ancestors_of(call_id: str) -> tuple[str, ...]:
    """Return the calls that a call belongs to, its parent first; the last belongs to none."""
    found: list[str] = []
    while call_id := parent_of(call_id):
        found.append(call_id)
    return tuple(found)


def with_parent(call_id: str) -> str:
    """Return the beginning of the reasons for which a child ends with its parent; empty for a call that belongs to
    none."""
    parent = parent_of(call_id)
    return f"call {parent!r}" if parent else ""


def head_of_family(call_id: str) -> str:
    """Return the call that belongs to none and began all that led to this one; the call itself if that is it."""
    return (call_id, *ancestors_of(call_id))[-1]
