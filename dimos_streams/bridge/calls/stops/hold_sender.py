"""The bridge's own hold, as velocity gates hear it: where it is sent, and what is sent there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from dimos_streams import clock
from dimos_streams.bus import Bus
from dimos_streams.errors import DimosStreamsError
from dimos_streams.messages.codec import channel_name, encode, split_channel
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.operator.holding import MAX_VALID_S, RELEASES, STOP_ROBOT, STOPPED


class HoldSender:
    """Sends the hold of ``stop-robot`` to gates, and its end, which is repeated because messages get lost."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._seq = 0
        self._releasing: dict[str, int] = {}
        """The number of times that the end of the hold is still to be sent, by channel."""
        self._held_on: set[str] = set()

    @property
    def releasing(self) -> bool:
        """True if the end of a hold is still to be sent."""
        return bool(self._releasing)

    def release(self, channels: Iterable[str]) -> None:
        """Send the end of the hold with the next rounds."""
        self._releasing.update(dict.fromkeys(channels, RELEASES))

    def send(self, channels: set[str], reason: str) -> None:
        """Send one round: hold on these channels, and release all others."""
        self.release(self._held_on - channels)
        self._held_on = channels
        for channel in sorted(channels):
            self._releasing.pop(channel, None)
            self._publish(channel, hold=True, reason=reason)
        for channel, left in sorted(self._releasing.items()):
            self._publish(channel, hold=False)
            if left > 1:
                self._releasing[channel] = left - 1
            else:
                del self._releasing[channel]

    def _publish(self, channel: str, *, hold: bool, reason: str = "") -> None:
        self._seq += 1
        message = Hold(
            utime=clock.utime(),
            source=STOP_ROBOT,
            seq=self._seq,
            hold=hold,
            valid_s=MAX_VALID_S,
            reason=reason or STOPPED,
        )
        self._bus.publish(channel, encode(message))


def usual_channels(namespaces: Iterable[str]) -> set[str]:
    """The channels on which the gates of these namespaces listen, unless their blueprint says otherwise."""
    channels = set()
    for namespace in namespaces:
        with contextlib.suppress(DimosStreamsError):  # a name that no topic can have: no gate listens there
            channels.add(channel_name(f"/{namespace}/hold" if namespace else "/hold", Hold))
    return channels


def is_hold_channel(channel: str) -> bool:
    """Return whether a channel that a gate names is one for holds; the name comes from outside."""
    try:
        topic, type_name = split_channel(channel)
        return bool(topic) and type_name == Hold.msg_name and channel == channel_name(topic, Hold)
    except DimosStreamsError:
        return False
