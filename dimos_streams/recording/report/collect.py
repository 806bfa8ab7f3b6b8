"""Reads a recording for its report, in memory that does not grow with it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from dimos_streams.common.names import namespace_of
from dimos_streams.common.polygon import Point
from dimos_streams.errors import MessageError, UserError
from dimos_streams.recording.call_events import InOrder
from dimos_streams.recording.format import LogEvent
from dimos_streams.recording.metadata import Metadata
from dimos_streams.recording.reader import LogReader, OnProgress
from dimos_streams.recording.report.call_book import CallBook
from dimos_streams.recording.report.key_frames import KeyFrames, is_picture
from dimos_streams.recording.report.model import DrawnZone, MapScene, Recorded
from dimos_streams.recording.report.senses import Senses
from dimos_streams.recording.report.series import LARGEST
from dimos_streams.recording.steady_times import steady
from dimos_streams.recording.summary import summarize
from dimos_streams.tool_stream.protocol.channels import EVENTS
from dimos_streams.tool_stream.wire.unpacking import unpack_event

_MAX_SCENE = 200
_POLYGONS = TypeAdapter(tuple[Point, ...])


def collect(logs: Sequence[LogReader], on_progress: OnProgress | None = None) -> Recorded:
    """Read logs, which are open, as one. Raises ``UserError`` if nothing at all is in them."""
    summary = summarize(logs, on_progress)
    if not summary.events:
        raise UserError(f"there is no event in {', '.join(repr(str(log.path)) for log in logs)}: nothing to report")
    recorded = Recorded(summary, summary.first, summary.first, scene=_scene(summary.metadata))
    book, senses, order = CallBook(), Senses(recorded.scene, recorded.namespaces), InOrder()
    for event in _shown(logs, summary.channels):
        recorded.last = max(recorded.last, event.utime)
        if event.channel != EVENTS:
            senses.take(event)
            continue
        try:
            unpacked = unpack_event(event.data)
        except MessageError:
            senses.unreadable[EVENTS] = senses.unreadable.get(EVENTS, 0) + 1
            continue
        for each in order.take(event.utime, unpacked):
            book.take(each)
    for each in order.rest():
        book.take(each)
    senses.finish()
    _fill(recorded, book, senses)
    recorded.repeated = order.repeated
    recorded.has_pictures = any(map(is_picture, summary.channels))
    frames = KeyFrames(recorded)
    recorded.frames = frames.read(_shown(logs, summary.channels))
    recorded.frames_left_out = frames.left_out
    recorded.damages = [str(damage) for log in logs for damage in log.damages]
    recorded.damaged_bytes = sum(log.damaged_bytes for log in logs)
    return recorded


def _shown(logs: Iterable[LogReader], channels: Container[str]) -> Iterator[LogEvent]:
    """The events of logs on these channels as one sequence, with clock set-backs and leaps corrected, see
    ``steady``."""
    events = steady(event for log in logs for event in log.events())
    return (event for event in events if event.channel in channels)


def _fill(recorded: Recorded, book: CallBook, senses: Senses) -> None:
    recorded.calls, recorded.left_out = list(book.calls.values()), book.left_out
    recorded.lines, recorded.lines_left_out = book.lines, book.lines_left_out
    recorded.ways, recorded.holds, recorded.unreadable = senses.ways, senses.holds, senses.unreadable
    recorded.series = senses.series | book.series
    recorded.scene.goals = book.goals[:_MAX_SCENE]


def _scene(metadata: Metadata | None) -> MapScene:
    """The zones and way-points that a recording's blueprint has. Invalid ones are left out."""
    scene = MapScene()
    for name, spec in metadata.modules.items() if metadata is not None else ():
        config = spec.get("config") if isinstance(spec, dict) else None
        if isinstance(config, dict):
            _add_to(scene, name, config)
    return scene


def _add_to(scene: MapScene, module: str, config: Mapping[str, Any]) -> None:
    zones = config.get("zones")
    for zone in zones[:_MAX_SCENE] if isinstance(zones, list) else ():
        corners = _points(zone.get("polygon")) if isinstance(zone, dict) else ()
        if len(corners) >= 3:
            scene.zones.append(DrawnZone(namespace_of(module), str(zone.get("name", "")), corners))
    for number, point in enumerate(_points(config.get("waypoints")), start=1):
        scene.waypoints.append((str(number), point))


def _points(value: Any) -> tuple[Point, ...]:
    """At most ``_MAX_SCENE`` points; none if any is invalid or out of range."""
    try:
        points = _POLYGONS.validate_python(value[:_MAX_SCENE] if isinstance(value, list) else value)
    except ValidationError:
        return ()
    return points if all(abs(x) <= LARGEST and abs(y) <= LARGEST for x, y in points) else ()
