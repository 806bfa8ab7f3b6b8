"""Holding a robot still: who holds it (``Hold`` messages), and what a velocity gate says of that in its heartbeats.

Whoever wants a robot to stand still publishes ``Hold`` on ``/hold``, again and again while that lasts. The velocity
gate and the skills read it with one ``HoldTable`` each, so they agree on who holds, and for how long.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dimos_streams import clock
from dimos_streams.common.invalid import first_problem
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.names import MAX_NAME
from dimos_streams.common.printable import printable
from dimos_streams.common.readable.json_cut import cut_to
from dimos_streams.common.readable.shortening import beginning
from dimos_streams.common.secrets import redacted
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.streams import In

HOLD_PERIOD_S: Final = 0.2
"""Maximum time, in seconds, between two messages of somebody who holds."""
HOLDS_KNOWN_AFTER_S: Final = 2.5 * HOLD_PERIOD_S
"""Time, in seconds, of listening after which a reader knows who holds, even if one message got lost."""
MIN_VALID_S: Final = HOLDS_KNOWN_AFTER_S
"""Minimum time, in seconds, for which a hold counts unrepeated: when it lapses, whoever else holds in its source's
name has had time to repeat that."""
MAX_VALID_S: Final = 60.0
"""Maximum time, in seconds, for which a hold counts unrepeated. Nobody could let go of it after a crash; but a holder
that hangs, or that a busy machine keeps from its processor, is back within that time and holds again."""
LATE_GATE_S: Final = 2 * MAX_VALID_S
"""Time, in seconds, in which a gate may turn up that was down when a hold ended, and so holds on."""
_MEANT_S: Final = 3_600.0
"""Time, in seconds, beyond which a hold is damage: nobody means it, and one flipped bit in a usual one (65,536 s
instead of 1 s) must not hold a robot."""
MAX_SOURCES: Final = 8
"""Maximum number of sources that are known at a time: with all their names, what a gate says of itself is small."""
REMEMBERED_S: Final = 10.0
"""Time, in seconds, for which a source's newest message is remembered; older ones that come late are skipped."""
RELEASES: Final = 5
"""Number of times that the end of a hold is sent, every ``HOLD_PERIOD_S``: any datagram may get lost."""
STOP_ROBOT: Final = "stop-robot"
"""The source of an operator's stop, which no module can be called. It holds teleoperation as well, and is always
listened to, however many others hold."""
GATE: Final = "velocity_gate"
"""The key of a velocity gate's state in its module's heartbeats."""

_HELD: Final = "held by "
_MAX_SHOWN: Final = 50
_REASON_CHARACTERS, _REASON_BYTES = 90, 100
_log = LimitedLog(logging.getLogger(__name__))


@dataclass(frozen=True, slots=True)
class _Newest:
    """The newest message of a source, and when it came."""

    message: Hold
    at: float
    older: Hold | None = None
    """The last message since then that was skipped because it is older, None if none was."""
    reason: str = ""
    """The message's reason, as it is shown."""

    def holds(self, now: float) -> bool:
        return self.message.hold and now - self.at <= min(max(self.message.valid_s, MIN_VALID_S), MAX_VALID_S)

    def outdates(self, message: Hold, now: float) -> bool:
        """Return whether a message that comes now is older. A restarted source counts anew, but its clock has gone
        on. One message may come late; the second such, in their order, is what its source says now, by a clock that
        was set back."""
        stamp = (message.utime, message.seq)
        if now - self.at > REMEMBERED_S or stamp > (self.message.utime, self.message.seq):
            return False
        return self.older is None or stamp <= (self.older.utime, self.older.seq)


class HoldTable:
    """The sources that hold the robot still. Time is handed in, in seconds of any clock that does not go back; it is
    the reader's own, so no clock of another machine matters.

    A hold that wants to count for longer than ``MAX_VALID_S`` counts for that time, and one for less than
    ``MIN_VALID_S`` for that. One that is damaged is skipped: its source is not a name, or ``valid_s`` is not finite,
    not more than 0 or more than an hour; a release may say 0. Both show in a limited line in the log and in ``note``.
    A message is skipped silently if a newer one of its source came before, but not two in a row.
    """

    def __init__(self, reader: str = "") -> None:
        """``reader`` is named in the log."""
        self._reader = reader
        self._newest: OrderedDict[str, _Newest] = OrderedDict()
        self.skipped = 0
        """Number of messages that were skipped."""
        self._odd, self._odd_until = "", 0.0

    def copy(self) -> HoldTable:
        """Return a table of what is known at this moment."""
        copied = HoldTable(self._reader)
        copied._newest, copied.skipped = self._newest.copy(), self.skipped
        copied._odd, copied._odd_until = self._odd, self._odd_until
        return copied

    def update(self, message: Hold, now: float) -> None:
        """Take a message in the order in which it came."""
        problem = _problem_of(message) or self._no_room(message.source, now)
        if problem:
            self.skipped += 1
            self._say(f"skipped a hold of {message.source[:_MAX_SHOWN]!r}: {problem}", now)
            return
        if message.hold and message.valid_s > MAX_VALID_S:
            valid = f"valid_s is {message.valid_s!r}; at most {MAX_VALID_S:g} s are valid"
            self._say(f"a hold of {message.source[:_MAX_SHOWN]!r} counts for {MAX_VALID_S:g} s only: {valid}", now)
        known = self._newest.get(message.source)
        if known is not None and known.outdates(message, now):
            self._newest[message.source] = replace(known, older=message)
        else:
            self._newest[message.source] = _Newest(message, now, reason=shown_reason(message.reason))

    def sources(self, now: float) -> tuple[str, ...]:
        """The sources that hold, in alphabetical order."""
        return tuple(hold.source for hold in self.holding(now))

    def holding(self, now: float) -> tuple[Hold, ...]:
        """The newest messages of the sources that hold, by source."""
        return tuple(newest.message for _, newest in sorted(self._newest.items()) if newest.holds(now))

    def reasons(self, now: float) -> tuple[str, ...]:
        """The reasons of the sources that hold, in the order of ``sources``; each is small, and in one line."""
        return tuple(newest.reason for _, newest in sorted(self._newest.items()) if newest.holds(now))

    def held(self, now: float) -> bool:
        """Return whether anybody holds: until they let go, or are silent for as long as their newest message
        counts."""
        return any(newest.holds(now) for newest in self._newest.values())

    def stopped(self, now: float) -> bool:
        """Return whether an operator has stopped the robot: then teleoperation can't move it either."""
        newest = self._newest.get(STOP_ROBOT)
        return newest is not None and newest.holds(now)

    def note(self, now: float) -> str:
        """A note for operators about the newest odd message of the last ``MAX_VALID_S``, empty if there is none."""
        return self._odd if now < self._odd_until else ""

    def _say(self, odd: str, now: float) -> None:
        self._odd, self._odd_until = odd, now + MAX_VALID_S
        _log.warning("%s: %s", self._reader, odd)

    def _no_room(self, source: str, now: float) -> str:
        """The reason for which a new source can't be taken; forgets one that does not hold if that makes room."""
        if source in self._newest or len(self._newest.keys() - {STOP_ROBOT}) < MAX_SOURCES:
            return ""
        if source == STOP_ROBOT:
            return ""  # it is one more at most
        agents = (item for item in self._newest.items() if item[0] != STOP_ROBOT)
        idle = next((name for name, newest in agents if not newest.holds(now)), None)
        if idle is None:
            return f"{MAX_SOURCES} others hold already, more are not listened to"
        del self._newest[idle]
        return ""


def shown_reason(reason: str) -> str:
    """Return the reason of a hold as it is shown: small, in one line, and without secrets."""
    return cut_to(printable(beginning(redacted(reason), _REASON_CHARACTERS)), _REASON_BYTES)


class HoldInput:
    """The state that an input of ``Hold`` messages is in now, by the clock of the running loop."""

    def __init__(self, stream: In[Hold], reader: str) -> None:
        """Listen from now on. ``reader`` is named in the log."""
        self._table = HoldTable(reader)
        stream.on_message(lambda message: self._table.update(message, clock.monotonic()))

    @property
    def held(self) -> bool:
        """True if somebody holds the robot still: then a motion waits instead of being blocked."""
        return self._table.held(clock.monotonic())

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that hold, in alphabetical order."""
        return self._table.sources(clock.monotonic())

    @property
    def holders(self) -> str:
        """Who holds, each with its reason if it gives one, for people; empty if nobody does."""
        now = clock.monotonic()
        return _named(self._table.sources(now), self._table.reasons(now))

    def said(self, text: str) -> str:
        """Return a text on a motion's progress, with who holds the robot before it if anybody does."""
        return f"{_HELD}{', '.join(self.sources)}; {text}" if self.held else text


def holders_in(text: str) -> tuple[str, ...]:
    """Return who holds the robot as ``HoldInput.said`` has put it before a text; empty if nobody does."""
    held, mark, _ = text.partition("; ")
    return tuple(held.removeprefix(_HELD).split(", ")) if mark and held.startswith(_HELD) else ()


class VelocityGateState(BaseModel):
    """The state that a velocity gate reports of itself."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    listens: bool
    """True if its ``hold`` input is wired."""
    channel: str = ""
    """The channel on which it listens."""
    holds: tuple[str, ...] = Field(default=(), max_length=MAX_SOURCES + 1, strict=False)
    """The sources for which it holds the robot still: no skill can move the base."""
    reasons: tuple[str, ...] = Field(
        default=(), max_length=MAX_SOURCES + 1, strict=False, exclude_if=lambda reasons: not any(reasons)
    )
    """Their reasons, for people, in the order of ``holds``; empty for one that gives none, and left out if none
    does."""
    still: bool
    """True if it lets nothing move the base now: its newest command is to stand, or nobody commands."""

    max_speed: float | None = Field(default=None, strict=False)
    """Maximum speed that it lets pass, m/s; None if it does not say."""
    max_turn: float | None = Field(default=None, strict=False)
    """Maximum rate of turn that it lets pass, rad/s; None if it does not say."""

    def __str__(self) -> str:
        if not self.listens:
            return "does not listen to /hold"
        if not self.holds:
            return "holds for nobody"
        return f"holds for {_named(self.holds, self.reasons)}{'' if self.still else ', but the base is driven'}"


def gate_state(state: Mapping[str, Any]) -> VelocityGateState | None:
    """The gate's part of a module's state, None for a module that is not a velocity gate.

    A state that can't be understood (of another version) confirms nothing: it counts as one that does not listen.
    """
    if GATE not in state:
        return None
    try:
        return VelocityGateState.model_validate(state[GATE])
    except ValidationError as error:
        _log.warning("a velocity gate's state can't be understood: %s", first_problem(error, "it"))
        return VelocityGateState(listens=False, still=False)


def _problem_of(message: Hold) -> str:
    """The fault of a message, empty if there is none."""
    if not (message.source.isprintable() and 0 < len(message.source.encode()) <= MAX_NAME):
        return f"its source is empty, has more than {MAX_NAME} bytes or is not printable"
    valid_s = message.valid_s
    if not 0.0 <= valid_s <= _MEANT_S or (message.hold and valid_s == 0.0):
        return f"valid_s is {valid_s!r}; more than 0 and at most {MAX_VALID_S:g} s are valid"
    return ""


def _named(sources: Sequence[str], reasons: Sequence[str]) -> str:
    """Return who holds, each with its reason if it gives one."""
    pairs = zip_longest(sources, reasons[: len(sources)], fillvalue="")
    return ", ".join(f"{source} ({reason})" if reason else source for source, reason in pairs)
