"""The tally of a log that is replayed: its span, its channels, and what of them is worth a remark."""

from __future__ import annotations

from collections.abc import Set

from dimos_streams.messages import registry
from dimos_streams.messages.codec import split_channel
from dimos_streams.recording.format import LogEvent
from dimos_streams.recording.recorder import LCM_SELF_TEST
from dimos_streams.recording.steady_times import Steadiness
from dimos_streams.regression.recorded.earlier_calls import EarlierCalls
from dimos_streams.regression.recorded.unreadable_messages import UnreadableMessages
from dimos_streams.regression.scope import Scope

_SHOWN_CHANNELS = 8
_SHOWN_SET_BACKS = 5


class LogTally:
    """The events of a log as far as a replay has read it."""

    def __init__(self, scope: Scope, earlier: EarlierCalls, withheld: Set[str]) -> None:
        """``withheld`` are the channels that the modules read and that the log says it leaves out."""
        self.times = Steadiness()
        self.unreadable = UnreadableMessages(scope.inputs, scope.outputs)
        self.first_utime = self.last_utime = 0
        self._scope = scope
        self._earlier = earlier
        self._withheld = withheld
        self._counts: dict[str, int] = {}
        self._untyped: dict[str, int] = {}

    @property
    def span_s(self) -> float:
        """The time between the first and the last event, in seconds."""
        return (self.last_utime - self.first_utime) / 1e6

    def add(self, event: LogEvent) -> None:
        """Count an event."""
        channel = event.channel
        self.first_utime = self.first_utime or event.utime
        self.last_utime = max(self.last_utime, event.utime)
        count = self._counts[channel] = self._counts.get(channel, 0) + 1
        if registry.find(split_channel(channel)[1]) is None and channel != LCM_SELF_TEST:
            self._untyped[channel] = count

    def why_not_rewritten(self) -> str:
        """The reason why what the modules give now, which differs, replaces nothing in the log; empty if there is
        none."""
        withheld = [channel for channel in self._unheard(differs=True) if channel in self._withheld]
        if not withheld:
            return ""
        return (
            f"it stays as it is, for it leaves out {', '.join(withheld)}, which the modules read: record that, too,"
            " which --record-without, --record-channels or the `without` of `blueprint_run` (pictures, if it is not"
            " given) has left out"
        )

    def remarks(self, *, differs: bool) -> list[str]:
        """``differs`` says whether outputs do: then inputs that a module can do without may be why, too."""
        unheard = self._unheard(differs=differs)
        remarks = [f"nothing was recorded on {channel}, which the modules read" for channel in unheard]
        if self._scope.left_out:
            remarks.append(f"not recorded, so not compared: {', '.join(sorted(self._scope.left_out))}")
        if self._earlier.names:
            remarks.append(self._earlier.remark())
        remarks += [
            f"{set_back}; from there on, {(set_back.utime - self.first_utime) / 1e6:.1f} s after the beginning, its"
            " times were taken as later by so much"
            for set_back in self.times.set_backs[:_SHOWN_SET_BACKS]
        ]
        remarks += self.unreadable.remarks()
        if self._untyped:
            shown = ", ".join(f"{name} ({count})" for name, count in list(self._untyped.items())[:_SHOWN_CHANNELS])
            remarks.append(f"channels of types that are not known here: {shown}")
        return remarks

    def _unheard(self, *, differs: bool) -> list[str]:
        """Return the inputs that may be missed, of which the log has nothing."""
        wanted = self._scope.required | self._scope.unrecorded if differs else self._scope.required
        return sorted(wanted - self._counts.keys())
