"""Copies a part of a log: some channels, some seconds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from dimos_streams.common.readable.shortening import shortened
from dimos_streams.errors import MessageError, UserError, suggest
from dimos_streams.messages.codec import decode, split_channel
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.recording.files.older import claim_all
from dimos_streams.recording.files.whole import whole_file
from dimos_streams.recording.format import LONGEST_CHANNEL, LogEvent
from dimos_streams.recording.metadata import CHANNEL, Metadata
from dimos_streams.recording.reader import LogReader, OnProgress, events_of_logs
from dimos_streams.recording.selection import Selection
from dimos_streams.recording.steady_times import Steadiness, going_on
from dimos_streams.recording.writer import LogWriter
from dimos_streams.tool_stream.liveness.heartbeat import announces_end
from dimos_streams.tool_stream.liveness.skill_fragments import fragment_number
from dimos_streams.tool_stream.protocol.channels import EVENTS, STATUS
from dimos_streams.tool_stream.wire.unpacking import unpack_event

_SHOWN = 60
"""Maximum length of a name in an error, in characters."""


@dataclass(frozen=True, kw_only=True)
class LogPart:
    """A part of a log. Times are seconds from the first event that is not metadata."""

    selection: Selection = dataclasses.field(default_factory=Selection)
    from_s: float = 0.0
    to_s: float | None = None
    remap: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Other names for topics, or for whole channels."""

    def includes(self, after_s: float, channel: str) -> bool:
        """Return whether the part has an event of a channel, ``after_s`` seconds after the first one. A part from the
        beginning has also what is stamped before that."""
        begun = self.from_s <= max(0.0, after_s)
        return begun and (self.to_s is None or after_s <= self.to_s) and self.selection(channel)

    def channel(self, channel: str) -> str:
        """The name of the channel in the part. Raises ``UserError`` for one that no log can hold."""
        if not self.remap:
            return channel
        topic, type_name = split_channel(channel)
        renamed = self.remap.get(channel) or self.remap.get(topic)
        if renamed is None:
            return channel
        whole = f"{renamed}#{type_name}" if type_name and "#" not in renamed else renamed
        if (size := len(whole.encode())) > LONGEST_CHANNEL:
            begin = shortened(whole, _SHOWN)
            raise UserError(f"--remap: the channel {begin!r} has {size} bytes; valid: at most {LONGEST_CHANNEL}")
        return whole

    def unused(self) -> list[str]:
        """The names that the part asks for and no event had, of those that were looked at."""
        channels = self.selection.asked
        names = {*channels, *(split_channel(channel)[0] for channel in channels)}
        patterns = [f"no event is of {text!r}{suggest(text, names)}" for text in self.selection.unused()]
        renamed = [f"no topic is called {name!r}{suggest(name, names)}" for name in self.remap if name not in names]
        return patterns + renamed


def timed(
    logs: Iterable[LogReader], on_progress: OnProgress | None = None
) -> Iterator[tuple[float | None, LogEvent]]:
    """Yield all events, each with its seconds since the first one that is not metadata, see ``Steadiness.first``, or
    with None for metadata. Where the clock was set back they go on. ``on_progress`` is called now and then with the
    log that is read."""
    known = Steadiness()
    for utime, event in going_on(events_of_logs(logs, on_progress), known):
        if event.channel == CHANNEL or known.first is None:
            yield None, event
        else:
            yield (utime - known.first) / 1e6, event


def events_of(logs: Iterable[LogReader], part: LogPart) -> Iterator[LogEvent]:
    """The events of a part, renamed, without metadata."""
    for after_s, event in timed(logs):
        if after_s is not None and part.includes(after_s, event.channel):
            yield event._replace(channel=part.channel(event.channel)) if part.remap else event


def refuse_itself(target: Path, sources: Iterable[LogReader]) -> None:
    """Raise ``UserError`` if a file that is to be written is one of the logs that are read."""
    if any(target.exists() and target.samefile(source.path) for source in sources):
        raise UserError(f"{str(target)!r} is the log itself; choose another name")


def check_found(count: int, sources: Sequence[LogReader], part: LogPart) -> None:
    """Raise ``UserError`` that says why a part of logs, which were read to their ends, has no events."""
    if count:
        return
    end_s: float | None = None
    for after_s, event in timed(sources):
        if after_s is not None:
            end_s = max(after_s, end_s or 0.0)
            part.selection(event.channel)  # of those that were at another time too
    if end_s is None:
        why = "it has no events"
    elif part.from_s > end_s:
        why = f"it ends after {end_s:.3f} s"
    else:
        why = "; ".join(part.unused()) or "the channels have no event at that time"
    raise UserError(f"nothing of {' '.join(str(log.path) for log in sources)} is in that part: {why}")


@dataclass(frozen=True, kw_only=True)
class Copied:
    """The outcome of copying a part of logs."""

    events: int
    """The number of events, metadata not counted."""
    begun_before: tuple[str, ...]
    """The calls that had begun and not ended before the part: it has only the rest of what they said."""


def cut(sources: Sequence[LogReader], target: Path, part: LogPart, on_progress: OnProgress | None = None) -> Copied:
    """Copy a part of logs, which are open and count as one, to a new file.

    Metadata is kept. So is what modules said of their skills before the part begins, without which calls can't be
    replayed, and the end of each module that is down when it begins. Raises ``UserError``, also for a part without
    events, and the errors of ``whole_file``; then nothing is written.
    """
    refuse_itself(target, sources)
    waiting: dict[str, tuple[str, bytes]] = {}
    """The messages that belong before the part's first event."""
    running: dict[str, str] = {}
    """The names of the calls that run where the part begins, by their ids."""
    writer: LogWriter | None = None
    count = 0
    with ExitStack() as stack:
        for after_s, event in timed(sources, on_progress):
            if after_s is None:
                waiting[CHANNEL] = CHANNEL, _narrowed(event.data, part.selection)
            elif part.includes(after_s, event.channel):
                if writer is None:
                    writer = stack.enter_context(LogWriter(stack.enter_context(_claimed(target))))
                for channel, data in waiting.values():
                    writer.write(event.utime, channel, data)
                    count += channel != CHANNEL
                waiting.clear()
                writer.write(event.utime, part.channel(event.channel), event.data)
                count += 1
            elif event.channel == STATUS and after_s < part.from_s and part.selection(STATUS):
                _remember(waiting, part.channel(STATUS), event)
            elif event.channel == EVENTS and after_s < part.from_s and part.selection(EVENTS):
                _note_call(running, event)
    check_found(count, sources, part)
    return Copied(events=count, begun_before=tuple(running.values()))


@contextmanager
def _claimed(target: Path) -> Iterator[Path]:
    """Give the block the path of a log that replaces one of that name, which nobody else writes meanwhile."""
    with ExitStack() as claims, whole_file(target) as path:
        if path != target and target.exists():
            claim_all([target], claims)
        yield path


def _note_call(running: dict[str, str], event: LogEvent) -> None:
    try:
        said = unpack_event(event.data)
    except MessageError:  # readers of the log see it
        return
    if said.type == "close":
        running.pop(said.call_id, None)
    else:
        running[said.call_id] = f"{said.skill} [{said.call_id}]"


def _narrowed(data: bytes, selection: Selection) -> bytes:
    try:
        return Metadata.decoded(data).narrowed(selection).encoded()
    except MessageError:  # of another version, or somebody else's channel of that name
        return data


def _remember(waiting: dict[str, tuple[str, bytes]], channel: str, event: LogEvent) -> None:
    try:
        status = decode(ModuleStatus, event.data, STATUS)
    except MessageError:  # not a heartbeat; readers of the log see it
        return
    if status.skills_json:
        number = fragment_number(status.skills_json)
        if number == 0:  # what else was said before it is of an older description
            for key in [key for key in waiting if key.startswith(f"{status.module}#")]:
                del waiting[key]
        waiting[f"{status.module}#{number}"] = channel, event.data
    own = f"{status.module}@{status.instance}"
    if announces_end(status.health):
        waiting[own] = channel, event.data
    else:  # an instance that lives, and what others have announced is over
        for key in [key for key in waiting if key.startswith(f"{status.module}@") and key != own]:
            del waiting[key]
