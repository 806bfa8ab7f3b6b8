"""The faults of what a gate has answered: a user's may answer anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from dimos_streams.agent.policies.gates.base import Allow, Refuse
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.skill import OnDuplicate

_SHOWN = 80


def verdict_fault(verdict: object) -> str:
    """Return what is wrong with a gate's verdict, or an empty string."""
    if isinstance(verdict, Refuse):
        return "" if isinstance(verdict.text, str) and verdict.text.strip() else _said("Refuse", "text", verdict.text)
    if not isinstance(verdict, Allow):
        return f"it is neither Allow nor Refuse: {_short(verdict)}"
    if not isinstance(verdict.arguments, Mapping):
        return _said("Allow", "arguments", verdict.arguments)
    if verdict.on_duplicate not in (None, *get_args(OnDuplicate)):
        return _said("Allow", "on_duplicate", verdict.on_duplicate)
    return "" if isinstance(verdict.note, str) else _said("Allow", "note", verdict.note)


def objection_fault(objection: object) -> str:
    """Return what is wrong with the answer of a verdict's ``again``, or an empty string."""
    if objection is None:
        return ""
    return verdict_fault(objection) if isinstance(objection, Refuse) else f"again() gives {_short(objection)}"


def _said(verdict: str, field: str, value: object) -> str:
    return f"its {verdict} has {field}={_short(value)}"


def _short(value: object) -> str:
    return shortened(repr(value), _SHOWN)
