"""The streams of the calls that skills of one host run as parts of their own: each event once, in order, none
lost."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from dimos_streams import clock
from dimos_streams.bus import Bus
from dimos_streams.common.tasks import ends_within
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.protocol.channels import PARENT
from dimos_streams.tool_stream.receiving.receiver import ToolStreamReceiver

_MAX_WAITING = 1024
"""Maximum number of events of one child that wait for its reader; beyond it the oldest are dropped, and reported."""


class ChildStream:
    """The events of a child, to be read by the call that runs it."""

    def __init__(self) -> None:
        self.heard_at = clock.monotonic()
        """The time on the loop's clock at which its module last said something of it, by an event or a heartbeat."""
        self.close: ToolEvent | None = None
        """Its last event, or None until that has come."""
        self._events: deque[ToolEvent] = deque()
        self._dropped = 0
        self._changed = asyncio.Event()

    def put(self, event: ToolEvent) -> None:
        """Take its next event. A progress that nobody has read gives way to the next one."""
        self.heard_at = clock.monotonic()
        if event.type == "close":
            self.close = event
        if event.type == "progress" and self._events and self._events[-1].type == "progress":
            self._events.pop()
        if len(self._events) >= _MAX_WAITING:
            self._events.popleft()
            self._dropped += 1
        self._events.append(event)
        self._changed.set()

    def read(self) -> tuple[list[ToolEvent], int]:
        """Return all events that wait, and how many before them were dropped; then none wait."""
        events, dropped = list(self._events), self._dropped
        self._events.clear()
        self._dropped = 0
        self._changed.clear()
        return events, dropped

    async def changed(self, within_s: float) -> None:
        """Wait for an event that has not been read, but no longer than ``within_s`` seconds."""
        await ends_within(within_s, self._changed.wait())


class ChildStreams:
    """A receiver of the children that somebody in this process waits for. Use from the bus's loop only."""

    def __init__(self, bus: Bus, directory: ModuleDirectory, own: Callable[[], str]) -> None:
        """``own`` returns the instance that runs the parents. Events in its name are the bridge's word on their
        children: only a reader of a parent's stream knows it."""
        self._bus = bus
        self._directory = directory
        self._own = own
        self._streams: dict[str, ChildStream] = {}
        self._receiver: ToolStreamReceiver | None = None

    def open(self, call_id: str) -> ChildStream:
        """Begin to receive a call, before it is asked for. Raises ``BusError`` if the bus refuses."""
        if self._receiver is None:
            self._directory.hear_all()  # a child may be anybody's
            receiver = ToolStreamReceiver(
                self._bus,
                self._deliver,
                may_open=self._may_open,
                proxy=self._own,
                name=PARENT,
                wanted=self._streams.__contains__,
            )
            receiver.start()
            self._receiver = receiver
            self._end_listening = self._directory.listen(self._on_status)
        stream = self._streams[call_id] = ChildStream()
        return stream

    def forget(self, call_id: str) -> None:
        """Wait for a call no more. The rest of it is received and thrown away."""
        self._streams.pop(call_id, None)

    def believes(self, event: ToolEvent) -> bool:
        """Return whether an event of a call that was asked for here is from a module that can run it, or from the
        bridge."""
        return self._may_open(event) or (bool(event.instance) and event.instance == self._own())

    def refusal_note(self) -> str:
        """See ``ToolStreamReceiver``."""
        return "" if self._receiver is None else self._receiver.refusal_note()

    def stop(self) -> None:
        """Receive no more. Stopping twice is fine."""
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            self._end_listening()
            receiver.stop()

    def _may_open(self, event: ToolEvent) -> bool:
        """Return whether an event is from the instance that speaks for a module with the skill: the bridge has chosen
        the module, so any of these may open the call."""
        return self._directory.can_run(event.skill, event.module, event.instance)

    def _deliver(self, events: list[ToolEvent]) -> None:
        for event in events:
            stream = self._streams.get(event.call_id)
            if stream is not None:
                stream.put(event)

    def _on_status(self, status: ModuleStatus) -> None:
        if self._receiver is not None:
            active = self._directory.is_active(status.module, status.instance)
            self._receiver.on_status(status, active=active)
        for call_id in status.call_ids:
            if call_id in self._streams:
                self._streams[call_id].heard_at = clock.monotonic()
