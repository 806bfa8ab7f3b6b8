"""Puts tool calls together from the pieces in which models stream them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic_core import from_json

from dimos_streams.agent.models.base import ToolCall, ToolCallDelta

SHOWN_CHARACTERS = 200
"""Of damaged arguments, told to the model."""

Damage = Literal["truncated", "malformed"]


@dataclass(frozen=True, slots=True)
class AssembledCall:
    """A call as it was received. With ``damage`` it must not be run."""

    call: ToolCall
    arguments: dict[str, Any]
    """Empty if the call is damaged."""
    damage: Damage | None = None
    problem: str = ""
    """What to tell the model about the damage."""


@dataclass(slots=True)
class _Slot:
    """A call in the making."""

    index: int | None
    id: str | None
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)


class ToolCallAssembler:
    """Takes the deltas of one answer and gives its calls, in the order in which they began.

    A piece belongs to the call of its index and id. An index comes with a new id where a new call begins; a piece
    with an id only belongs to the call of that id or gives the newest call its id; a piece with neither continues
    the newest call, or begins one if it brings a name after arguments, or one that can't continue the newest's name.
    """

    def __init__(self, offered: Iterable[str] = ()) -> None:
        self._offered = frozenset(offered)
        self._slots: list[_Slot] = []

    def add(self, delta: ToolCallDelta) -> None:
        """Take the next piece."""
        slot = self._slot_for(delta)
        if slot is None:
            slot = _Slot(delta.index, delta.id)
            self._slots.append(slot)
        slot.id = slot.id or delta.id
        if delta.name != slot.name:  # some servers repeat the whole name in every piece
            slot.name += delta.name
        if delta.arguments:
            slot.pieces.append(delta.arguments)

    def finish(self, *, complete: bool, new_id: Callable[[], str]) -> tuple[AssembledCall, ...]:
        """The calls. ``complete`` is False if the stream was cut: then no call can be trusted to be whole.

        Calls without an id, or with one that another call has, get one from ``new_id``.
        """
        taken: set[str] = set()
        calls = []
        for slot in self._slots:
            call_id = slot.id if slot.id and slot.id not in taken else new_id()
            taken.add(call_id)
            calls.append(_assembled(ToolCall(call_id, slot.name, slot.arguments), complete=complete))
        return tuple(calls)

    def _slot_for(self, delta: ToolCallDelta) -> _Slot | None:
        """The call that a piece belongs to, None for a new one."""
        candidates = [slot for slot in self._slots if delta.index is None or slot.index == delta.index]
        if delta.id:
            known = [slot for slot in candidates if slot.id == delta.id]
            if known:
                return known[-1]
        if not candidates:
            return None
        newest = candidates[-1]
        if delta.id and newest.id:
            return None
        return None if self._begins_a_call(delta, newest) else newest

    def _begins_a_call(self, delta: ToolCallDelta, newest: _Slot) -> bool:
        if not delta.name or not newest.name:
            return False
        if newest.pieces:
            # A repeated name in front of more of the same arguments is no new call.
            return delta.name != newest.name or _parse(newest.arguments)[1] is None
        if newest.name not in self._offered or delta.name == newest.name:
            return False
        return not any(name.startswith(newest.name + delta.name) for name in self._offered)


def _assembled(call: ToolCall, *, complete: bool) -> AssembledCall:
    arguments, damage, reason = _judge(call.arguments)
    if not complete and damage is None:
        damage, reason = "truncated", "the answer was cut off before it was finished"
    if damage is None:
        return AssembledCall(call, arguments)
    hint = "Send the whole call again." if damage == "truncated" else "Send the call again with one JSON object."
    shown = call.arguments[:SHOWN_CHARACTERS]
    problem = (
        f"{call.name!r} was not run: its arguments are {damage} ({reason}). {hint} "
        f"Received ({len(shown)} of {len(call.arguments)} characters): {shown}"
    )
    return AssembledCall(call, {}, damage, problem)


def _judge(text: str) -> tuple[dict[str, Any], Damage | None, str]:
    value, reason = _parse(text)
    if reason is None:
        if isinstance(value, dict):
            return value, None, ""
        if value is None:
            return {}, None, ""
        return {}, "malformed", f"a JSON {type(value).__name__}, not an object"
    return {}, "truncated" if reason.startswith("EOF while parsing") else "malformed", reason


def _parse(text: str) -> tuple[Any, str | None]:
    """The value, or why it is not JSON. No text at all means no arguments."""
    if not text.strip():
        return None, None
    try:
        return from_json(text, allow_inf_nan=False), None
    except ValueError as error:
        return None, str(error)
