"""Reads a recording once, so that any of its moments is at hand afterwards."""

from __future__ import annotations

import bisect
import gc
import logging
from array import array
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.names import namespace_of
from dimos_streams.errors import MessageError, UserError
from dimos_streams.journal.journal import Journal
from dimos_streams.operator.known_names import MONITOR
from dimos_streams.recording.call_events import InOrder
from dimos_streams.recording.format import LogEvent
from dimos_streams.recording.metadata import Metadata
from dimos_streams.recording.steady_times import SetBack
from dimos_streams.recording.tape import Place, Tape
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.protocol.channels import EVENTS
from dimos_streams.tool_stream.wire.unpacking import unpack_event
from dimos_streams.viewer.marks import Marks
from dimos_streams.viewer.state.world import RecordedWorld

KEY_EVERY_US = 2_000_000
"""The least time of the log, in µs, between two moments that are kept; more for a long log."""
KEY_BYTES = 4_000_000
"""The bytes of the log after which another moment is kept, however little time has passed; more for a long log. No
more than that is read again."""
MAX_KEYS = 600
_BATCH = 256
_STEP = 256
"""The number of events that are read at once."""
_log = LimitedLog(logging.getLogger(__name__))


@dataclass(frozen=True, slots=True)
class Key:
    """A moment that is kept."""

    utime: int
    place: Place
    """The place from which the tape goes on behind it."""
    world: RecordedWorld


class Index:
    """The contents of a whole recording: its calls' events in a journal, its moments, and worlds at some of them."""

    def __init__(self, tape: Tape, journal: Journal, metadata: Metadata | None) -> None:
        """``journal`` is open and empty, and keeps all that it is given."""
        self.tape = tape
        self.journal = journal
        self.metadata = metadata
        self.damages: list[str] = []
        """The logs that are damaged, and where."""
        self.set_backs: list[SetBack] = []
        """The places at which the clock goes back."""
        self.begin = 0
        self.end = 0
        self.marks = Marks()
        self.channels: dict[str, None] = {}
        self.order = InOrder()
        self.unreadable: dict[str, int] = {}
        """The number of messages that can't be read, by channel."""
        self.namespaces: set[str] = set()
        """The modules' namespaces."""
        self._models = _models(metadata)
        self._keys: list[Key] = []
        self._heard = array("q")
        """The log's time at which each event of the journal was handed on."""
        self._waiting: list[ToolEvent] = []

    def read(self) -> Generator[int, None, None]:
        """Read the tape in steps, between which others may run; yield the bytes that were read so far. Raises
        ``UserError`` for one without events."""
        with _without_collector():
            yield from self._read()

    def _read(self) -> Generator[int, None, None]:
        world = RecordedWorld(self._models)
        newest: LogEvent | None = None
        for number, (event, place) in enumerate(self.tape.events()):
            if newest is None:
                self.begin = self.end = event.utime
            self._keep_key(world, event, place)
            newest = event
            self.end = max(self.end, event.utime)
            self._take(world, event)
            if number % _STEP == 0:
                yield event.offset
        if newest is None:
            raise UserError("there is no event in the recording: nothing can be shown")
        for due_events in self.order.rest():
            self._hear(world, self.end, due_events)
        self._flush()
        self.damages = self.tape.damages()
        self.set_backs = list(self.tape.set_backs)
        self.channels = dict.fromkeys(world.newest)
        self.namespaces = {namespace_of(module.name) for module in world.modules()}

    def key_before(self, utime: int) -> Key:
        """The last moment kept up to this one, or else the first."""
        index = bisect.bisect_right(self._keys, utime, key=lambda key: key.utime)
        return self._keys[max(0, index - 1)]

    def heard_until(self, utime: int) -> int:
        """The offset of the newest event that was handed on up to a moment; 0 before the first."""
        return bisect.bisect_right(self._heard, utime)

    def _take(self, world: RecordedWorld, event: LogEvent) -> None:
        due_events = self.order.due(event.utime)
        try:
            world.take(event)
            if event.channel == EVENTS:
                due_events += self._ordered(world, event)
        except MessageError as error:
            # Counted only here: a viewer that goes back and forth reads the same events again and again.
            self.unreadable[event.channel] = self.unreadable.get(event.channel, 0) + 1
            _log.warning("skipped: %s", error)
        for each in due_events:
            self._hear(world, event.utime, each)

    def _ordered(self, world: RecordedWorld, event: LogEvent) -> list[ToolEvent]:
        """The events of calls that are due with the one in a message. Raises ``MessageError`` if it has none."""
        unpacked = unpack_event(event.data)
        if unpacked.caller != MONITOR:
            return self.order.take(event.utime, unpacked)
        world.report(unpacked)
        return []

    def _hear(self, world: RecordedWorld, utime: int, event: ToolEvent) -> None:
        self._heard.append(utime if not self._heard else max(utime, self._heard[-1]))
        self._waiting.append(event)
        world.hear(len(self._heard), event)
        self.marks.add(self._heard[-1], event)
        if len(self._waiting) >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        self.journal.append(self._waiting)
        self._waiting = []

    def _keep_key(self, world: RecordedWorld, event: LogEvent, place: Place) -> None:
        """Keep the moment before an event, if the last kept one is long ago; of too many every second is dropped."""
        last = self._keys[-1] if self._keys else None
        if last is not None:
            passed, read = event.utime - last.utime, place.offset - last.place.offset
            if passed < 0 or (passed < self._spacing() and read < self._spacing_bytes(place)):
                return
        self._keys.append(Key(event.utime, place, world.copy()))
        if len(self._keys) > MAX_KEYS:
            self._keys = self._keys[::2]

    def _spacing(self) -> int:
        """The least time between two kept moments, such that there is room for as many again as there are."""
        span = self._keys[-1].utime - self._keys[0].utime
        return max(KEY_EVERY_US, span // (MAX_KEYS // 2))

    def _spacing_bytes(self, place: Place) -> int:
        return max(KEY_BYTES, (place.offset - self._keys[0].place.offset) // (MAX_KEYS // 2))


@contextmanager
def _without_collector() -> Iterator[None]:
    """Turn Python's collector off, which would take a third of the time and find nothing: what is read stays."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _models(metadata: Metadata | None) -> dict[str, str]:
    """The models of agents, as far as the recording's blueprint names them."""
    found = {}
    for name, spec in metadata.modules.items() if metadata is not None else ():
        config = spec.get("config") if isinstance(spec, dict) else None
        model = config.get("model") if isinstance(config, dict) else None
        if isinstance(model, str):
            found[name] = model
    return found
