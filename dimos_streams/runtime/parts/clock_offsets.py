"""The offsets by which other machines' clocks are ahead of this one's, measured by round trips on the bus.

As in NTP (RFC 5905, section 8): what another machine has heard of ours comes back with four stamps, two of each
clock. Half of the difference between the ways there and back is the offset, and half of the round trip bounds its
error; of the last few the fastest round trip counts. Free of I/O; all times are µs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from dimos_streams.messages.dimos_streams import ClockEcho
from dimos_streams.tool_stream.liveness.part_state import ClockOffset

KEPT = 8
"""Number of round trips kept of each machine: few, so that a clock that is set, or drifts, is followed."""
MAX_MACHINES = 64
SLACK_US = 500
"""The contradiction, in µs, that is allowed between two round trips, beyond the sum of their bounds."""
_LONGEST_US = 5_000_000
"""Maximum duration of a round trip, in µs: a longer one says nothing."""


@dataclass(slots=True)
class _Peer:
    sent: int
    """The stamp of its newest echo."""
    received: int
    trips: deque[ClockOffset] = field(default_factory=lambda: deque(maxlen=KEPT))


class ClockOffsets:
    """The clocks of the other machines, by name."""

    def __init__(self, machine: str) -> None:
        self._machine = machine
        self._peers: dict[str, _Peer] = {}

    def hear(self, echo: ClockEcho, received: int) -> None:
        """Take another machine's echo, which has come at ``received`` by this machine's clock."""
        if echo.machine == self._machine or (echo.machine not in self._peers and len(self._peers) >= MAX_MACHINES):
            return
        peer = self._peers.setdefault(echo.machine, _Peer(echo.utime, received))
        peer.sent, peer.received = echo.utime, received
        for machine, ours_sent, theirs_received in zip(echo.machines, echo.sent, echo.received, strict=True):
            if machine == self._machine:
                _add(peer, _trip(ours_sent, theirs_received, echo.utime, received))

    def echo(self, now: int) -> ClockEcho:
        """Return the echo to send now."""
        return ClockEcho(
            utime=now,
            machine=self._machine,
            machines=list(self._peers),
            sent=[peer.sent for peer in self._peers.values()],
            received=[peer.received for peer in self._peers.values()],
        )

    def offsets(self) -> Mapping[str, ClockOffset]:
        """Return the offsets measured so far, for each machine by its fastest round trip."""
        return {
            machine: min(peer.trips, key=lambda trip: trip.within_us)
            for machine, peer in self._peers.items()
            if peer.trips
        }


def _trip(sent: int, theirs_received: int, theirs_sent: int, received: int) -> ClockOffset | None:
    """Return the offset by the four stamps of one round trip, or None if they can't be those of one."""
    round_us = (received - sent) - (theirs_sent - theirs_received)
    if not 0 <= round_us <= _LONGEST_US:
        return None
    ahead_us = ((theirs_received - sent) + (theirs_sent - received)) // 2
    return ClockOffset(ahead_us=ahead_us, within_us=round_us // 2)


def _add(peer: _Peer, trip: ClockOffset | None) -> None:
    if trip is None:
        return
    if any(abs(trip.ahead_us - old.ahead_us) > trip.within_us + old.within_us + SLACK_US for old in peer.trips):
        peer.trips.clear()  # one of the clocks was set
    peer.trips.append(trip)
