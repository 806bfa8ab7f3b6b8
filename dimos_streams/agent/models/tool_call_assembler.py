"""Puts tool calls together from the pieces in which models stream them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from dimos_streams.agent.models.protocol import ToolCall, ToolCallDelta
from dimos_streams.common.json.reading import parse_command, repaired, well_formed_json
from dimos_streams.common.names import tool_name
from dimos_streams.common.readable.shortening import beginning
from dimos_streams.common.readable.surrogates import well_formed
from dimos_streams.common.secrets import has_secret, redacted, redacted_data

SHOWN_CHARACTERS = 200
"""Maximum length of damaged arguments as the model is shown them, in characters."""

MAX_CALLS = 1000
"""Maximum number of calls in an answer; further ones are not read."""
_MAX_NAME = 200
_LONGEST_NAME = 10 * _MAX_NAME
"""Length of a name beyond which no further piece of it is kept, in characters."""
_MAX_ID = 1000
"""Maximum length of an id, in characters; a longer one is replaced, for it goes into every event and every
request."""
_MAX_EXTRA = 100_000
"""Maximum length of what a server wants back with a call, in characters of JSON; if it is longer, nothing of it is
kept."""

Damage = Literal["truncated", "malformed"]


@dataclass(frozen=True, slots=True)
class AssembledCall:
    """A call as it was received. With ``damage`` it must not be run."""

    call: ToolCall
    arguments: dict[str, Any]
    """The arguments; empty if the call is damaged."""
    damage: Damage | None = None
    problem: str = ""
    """A text for the model about the damage; empty if there is none."""


class _Extent:
    """Follows a JSON object as it arrives, and knows whether it is closed, without reading anything twice."""

    _MARKS = re.compile(r"\\[\s\S]?|[\"{}\[\]]")

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaping = False
        self.closed = False

    def feed(self, text: str) -> None:
        if self._escaping and text:
            text, self._escaping = text[1:], False
        for mark in self._MARKS.findall(text):
            if mark[0] == "\\":
                self._escaping = len(mark) == 1
            elif mark == '"':
                self._in_string = not self._in_string
            elif not self._in_string:
                self._depth += 1 if mark in "{[" else -1
                self.closed = self._depth <= 0


@dataclass(slots=True)
class _Slot:
    """A call in the making."""

    number: int
    """Its place in the answer."""
    index: int | None
    id: str | None = None
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    size: int = 0
    """The number of characters in all pieces that are no blanks."""
    extent: _Extent = field(default_factory=_Extent)
    extra: Mapping[str, Any] | None = None

    @property
    def known_name(self) -> str:
        """The name, as far as it has come."""
        return beginning(redacted(well_formed(self.name)), _MAX_NAME)

    @property
    def known_id(self) -> str:
        """The id; empty if there is none that can be used."""
        call_id = well_formed(self.id or "")
        return call_id if len(call_id) <= _MAX_ID else ""

    @property
    def arguments(self) -> str:
        return well_formed_json("".join(self.pieces))


class ToolCallAssembler:
    """Takes the deltas of one answer and gives its calls, in the order in which they began.

    A piece belongs to the call of its index and id. An index comes with a new id where a new call begins, unless the
    piece only continues arguments; a piece without id and name under an index that no call has continues the newest
    call, as long as its arguments go on; a piece with an id only belongs to the call of that id or gives the newest
    call its id; a piece with neither continues the newest call, or begins one if it brings a name after arguments, or
    one that can't continue the newest's name.
    """

    def __init__(self, offered: Iterable[str] = ()) -> None:
        self._full = {tool_name(name): name for name in offered}
        """The names of what is offered, by those by which it is; a model may have read the others elsewhere."""
        self._offered = frozenset([*self._full, *self._full.values()])
        self._slots: list[_Slot] = []
        self._newest: dict[int | None, _Slot] = {}
        """The newest call of each index; of None the newest of all."""
        self._by_id: dict[tuple[int | None, str], _Slot] = {}
        """The newest call of each id among those of an index; of None among all."""
        self._begun = 0
        """The number of calls, from the first on, whose arguments have begun."""

    @property
    def full(self) -> bool:
        """True if there are as many calls as one answer may have."""
        return len(self._slots) >= MAX_CALLS

    def add(self, delta: ToolCallDelta) -> None:
        """Take the next piece. One that would begin a call too many is not taken."""
        slot = self._slot_for(delta)
        if slot is not None and _is_repeated(delta, slot):
            return
        if slot is None:
            if self.full:
                return
            slot = self._begin(delta.index)
        if delta.id and not slot.id:
            self._identify(slot, delta.id)
        slot.extra = delta.extra or slot.extra
        # Some servers repeat the whole name in every piece.
        if len(slot.name) <= _LONGEST_NAME and (delta.name != slot.name or self._continues(slot.name, delta.name)):
            slot.name += delta.name
        if delta.arguments:
            slot.pieces.append(delta.arguments)
            slot.size += _size(delta.arguments)
            slot.extent.feed(delta.arguments)

    def newly_begun(self) -> list[str]:
        """The names of the calls whose arguments have begun, in order, up to the first that has none yet. Those that
        were returned before are left out."""
        begun = list(itertools.takewhile(lambda slot: slot.pieces, itertools.islice(self._slots, self._begun, None)))
        self._begun += len(begun)
        return [self._name(slot) for slot in begun]

    def finish(
        self, *, complete: bool, limited: bool = False, new_id: Callable[[], str]
    ) -> tuple[AssembledCall, ...]:
        """Return the calls. ``complete`` is False if the stream was cut: then no call can be trusted to be whole.

        ``limited`` is True if the model was stopped at a limit: then the newest call is whole only if its arguments
        show it. Calls without an id, or with one that another call has, get one from ``new_id``.
        """
        taken: set[str] = set()
        calls = []
        for slot in self._slots:
            if not slot.name and not slot.pieces:
                continue  # some servers announce calls that never come
            call_id = slot.known_id or new_id()
            while call_id in taken:
                call_id = new_id()
            taken.add(call_id)
            whole = complete and not (limited and slot is self._slots[-1] and not slot.extent.closed)
            call = ToolCall(call_id, self._name(slot), slot.arguments, _kept(slot.extra))
            calls.append(_assembled(call, complete=whole))
        return tuple(calls)

    def _name(self, slot: _Slot) -> str:
        """The name of the skill that is called, as far as it has come."""
        return self._full.get(slot.known_name, slot.known_name)

    def _slot_for(self, delta: ToolCallDelta) -> _Slot | None:
        """The call that a piece belongs to, or None for a new one."""
        if delta.id and (known := self._by_id.get((delta.index, delta.id))) is not None:
            return None if _is_another(delta, known) else known
        newest = self._newest.get(delta.index)
        if newest is None:
            return self._continued_elsewhere(delta)
        if delta.id and newest.id:
            # There are servers that make up a new id for every piece of the same call.
            continues = delta.index is not None and not delta.name and not newest.extent.closed
            return newest if continues else None
        return None if self._begins_a_call(delta, newest) else newest

    def _continued_elsewhere(self, delta: ToolCallDelta) -> _Slot | None:
        """The call whose arguments go on under an index that no call has: there are servers that count pieces."""
        newest = self._newest.get(None)
        goes_on = newest is not None and bool(newest.name) and not newest.extent.closed
        return newest if goes_on and not (delta.id or delta.name) else None

    def _begin(self, index: int | None) -> _Slot:
        slot = self._newest[None] = _Slot(len(self._slots), index)
        self._slots.append(slot)
        if index is not None:
            self._newest[index] = slot
        return slot

    def _identify(self, slot: _Slot, call_id: str) -> None:
        slot.id = call_id
        for key in dict.fromkeys(((None, call_id), (slot.index, call_id))):
            other = self._by_id.get(key)
            if other is None or other.number < slot.number:
                self._by_id[key] = slot

    def _begins_a_call(self, delta: ToolCallDelta, newest: _Slot) -> bool:
        if not delta.name or not newest.name:
            return False
        if newest.pieces:
            # A repeated name in front of more of the same arguments is not a new call.
            return delta.name != newest.name or newest.extent.closed
        if newest.name not in self._offered or delta.name == newest.name:
            return False
        return not self._continues(newest.name, delta.name)

    def _continues(self, name: str, piece: str) -> bool:
        return any(offered.startswith(name + piece) for offered in self._offered)


def _kept(extra: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    kept: Mapping[str, Any] | None = repaired(extra)
    return kept if kept is None or len(json.dumps(kept)) <= _MAX_EXTRA else None


def _is_another(delta: ToolCallDelta, slot: _Slot) -> bool:
    """Return whether a piece with the id of a call is a whole call of its own: there are servers with one id for
    all."""
    whole = slot.extent.closed and bool(delta.name) and delta.arguments.lstrip().startswith("{")
    return whole and not _is_repeated(delta, slot)


def _is_repeated(delta: ToolCallDelta, slot: _Slot) -> bool:
    """Return whether a piece is a whole call once more, or only its arguments, perhaps with other blanks."""
    names = (delta.id, delta.name)
    if not slot.extent.closed or (any(names) and names != (slot.id, slot.name)):
        return False
    if not delta.arguments or _size(delta.arguments) != slot.size:
        return False
    return _parse(delta.arguments) == _parse("".join(slot.pieces))


def _size(arguments: str) -> int:
    return sum(map(len, arguments.split()))


def _assembled(call: ToolCall, *, complete: bool) -> AssembledCall:
    received, damage, reason = _judge(call.arguments)
    arguments = redacted_data(received)
    # Secrets are looked for in what was meant: escapes hide some, and make others of the end of a line in a URL.
    if damage is not None:
        call = replace(call, arguments=redacted(call.arguments))
    elif arguments != received or has_secret(call.arguments):
        call = replace(call, arguments=json.dumps(arguments))
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
    """Return the value, or why the text is not JSON. No text at all means no arguments."""
    if not text.strip():
        return None, None
    try:
        return parse_command(text), None
    except ValueError as error:
        return None, str(error)
