"""Finds the replayed output that belongs to each recorded one, while both are still coming in.

What is kept is bounded by the time tolerance: whatever is older than that can't find a counterpart any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from dimos_streams.regression.differences import FieldDifference

T = TypeVar("T")

Compare = Callable[[T, T], list[FieldDifference]]
_WORST = 20


@dataclass(frozen=True, slots=True)
class Output(Generic[T]):
    """An output of a module."""

    utime: int
    value: T
    optional: bool = False
    """True if it may lack a counterpart: a replayed one because the log ends before it, a recorded one because
    another module may have sent it, or a call that began before the log."""
    is_earlier: bool = False
    """True for a recorded one that such a call may have sent."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first thing that is wrong in a stream."""

    utime: int
    stream: str
    what: Literal["different", "missing", "extra"]
    """``missing``: recorded but not replayed. ``extra``: replayed but not recorded."""
    fields: tuple[FieldDifference, ...] = ()
    text: str = ""
    """A rendering of what was there, where the other side has nothing."""


@dataclass(slots=True)
class StreamResult:
    """The counts of one stream."""

    stream: str
    strict: bool = False
    """True if no tolerance lets anything be wrong in it."""
    recorded: int = 0
    replayed: int = 0
    matched: int = 0
    different: int = 0
    missing: int = 0
    extra: int = 0
    by_others: int = 0
    """The number of recorded messages of a shared channel that another module may have sent."""
    by_earlier: int = 0
    """The number of recorded messages that a call from before the log may have sent."""
    close: str = ""
    """How the call that the stream is of ended on each side, if it ended otherwise; else empty."""
    first: Difference | None = None
    worst: dict[str, tuple[float, int]] = field(default_factory=dict)
    """The greatest difference beyond the tolerance, and its time, by field."""

    @property
    def wrong(self) -> int:
        """The number of outputs without a counterpart that agrees."""
        return self.different + self.missing + self.extra

    def passed(self, unmatched: float) -> bool:
        """Return whether no greater share than ``unmatched`` is wrong. Above 0 one output may be in any case, unless
        it is all that was recorded."""
        if self.strict or not unmatched:
            return not self.wrong
        if self.wrong <= 1 and (self.recorded != 1 or self.replayed > 1):
            return True
        # A product would round: 0.29 * 100 is less than 29.
        return self.wrong / max(self.recorded, self.replayed) <= unmatched

    def note(self, difference: Difference) -> None:
        """Count something wrong."""
        setattr(self, difference.what, getattr(self, difference.what) + 1)
        if self.first is None or difference.utime < self.first.utime:
            self.first = difference
        for one in difference.fields:
            known = self.worst.get(one.field, (-1.0, 0))[0]
            is_room = one.field in self.worst or len(self.worst) < _WORST
            if one.amount is not None and one.amount > known and is_room:
                self.worst[one.field] = (one.amount, difference.utime)


class Matcher(Generic[T]):
    """The matching of one stream. Recorded outputs must be given no later than when replayed time reaches theirs."""

    def __init__(
        self,
        stream: str,
        compare: Compare[T],
        describe: Callable[[T], str],
        *,
        window_us: int,
        in_order: bool,
        on_left: Callable[[Output[T]], None] = lambda output: None,
    ) -> None:
        """Make a matcher. With ``in_order`` the n-th belongs to the n-th, whenever they come; else outputs belong
        together that come within the window. ``on_left`` is called with optional recorded outputs that found no
        counterpart."""
        self.result = StreamResult(stream, strict=in_order)
        self._compare = compare
        self._describe = describe
        self._window_us = window_us
        self._in_order = in_order
        self._on_left = on_left
        self._recorded: deque[Output[T]] = deque()
        self._replayed: deque[Output[T]] = deque()

    def recorded(self, output: Output[T]) -> None:
        """Take an output of the log."""
        self._recorded.append(output)

    def replayed(self, output: Output[T]) -> None:
        """Take an output of the replay, and match what can be matched."""
        self._replayed.append(output)
        self.settle(output.utime)

    def settle(self, now: int) -> None:
        """Match what can be matched; ``now`` is the time that the replay has reached."""
        while self._recorded and (self._match_in_order() if self._in_order else self._match_in_time(now)):
            pass
        while not self._in_order and not self._recorded and self._replayed and self._is_over(self._replayed[0], now):
            self._leave_replayed(self._replayed.popleft())

    def finish(self) -> StreamResult:
        """Match what is left, since nothing more comes, and return the result."""
        self.settle(1 << 62)
        for output in self._recorded:
            self._leave_recorded(output)
        for output in self._replayed:
            self._leave_replayed(output)
        self._recorded.clear()
        self._replayed.clear()
        return self.result

    def _is_over(self, output: Output[T], now: int) -> bool:
        return output.utime + self._window_us < now

    def _match_in_order(self) -> bool:
        if not self._replayed:
            return False
        self._pair(self._recorded.popleft(), self._replayed.popleft())
        return True

    def _match_in_time(self, now: int) -> bool:
        """Settle the first recorded output, and return False if it must wait."""
        first = self._recorded[0]
        while self._replayed and self._replayed[0].utime + self._window_us < first.utime:
            self._leave_replayed(self._replayed.popleft())
        near = [output for output in self._replayed if abs(output.utime - first.utime) <= self._window_us]
        for index, output in enumerate(near):
            if not self._compare(first.value, output.value):
                for _ in range(index):
                    self._leave_replayed(self._replayed.popleft())
                self._pair(self._recorded.popleft(), self._replayed.popleft())
                return True
        if not self._is_over(first, now):
            return False
        self._recorded.popleft()
        if not near or first.optional:
            self._leave_recorded(first)
            return True
        nearest = min(near, key=lambda output: abs(output.utime - first.utime))
        self._replayed.remove(nearest)
        self._pair(first, nearest)
        return True

    def _pair(self, recorded: Output[T], replayed: Output[T]) -> None:
        self.result.recorded += 1
        self.result.replayed += 1
        found = list(self._compare(recorded.value, replayed.value))
        apart = abs(recorded.utime - replayed.utime)
        if apart > self._window_us:
            shown = (f"{recorded.utime / 1e6:.6f}", f"{replayed.utime / 1e6:.6f}")
            found.insert(0, FieldDifference("time", *shown, apart / 1e6))
        if found:
            stream = self.result.stream
            text = self._describe(recorded.value)
            utime = min(recorded.utime, replayed.utime)  # what comes too early is there before it is missing
            self.result.note(Difference(utime, stream, "different", tuple(found), text))
        else:
            self.result.matched += 1

    def _leave_recorded(self, output: Output[T]) -> None:
        if output.optional:
            if output.is_earlier:
                self.result.by_earlier += 1
            else:
                self.result.by_others += 1
            self._on_left(output)
            return
        self.result.recorded += 1
        text = self._describe(output.value)
        self.result.note(Difference(output.utime, self.result.stream, "missing", text=text))

    def _leave_replayed(self, output: Output[T]) -> None:
        if output.optional:
            return
        self.result.replayed += 1
        text = self._describe(output.value)
        self.result.note(Difference(output.utime, self.result.stream, "extra", text=text))
