"""Reads a mission record. Whatever is in its directory, nothing is raised: what can't be read, or does not fit, is
skipped and logged."""

from __future__ import annotations

import heapq
import io
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.record.data_check import check_data
from dimos_streams.agent.record.event_data.missions import DoneData
from dimos_streams.agent.record.event_data.model_answers import UsageData
from dimos_streams.agent.record.record_files import GENERAL, OLD, OUTDATED, file_name, mission_files
from dimos_streams.common.invalid import problem_of
from dimos_streams.common.json.reading import parse_json
from dimos_streams.common.printable import printable
from dimos_streams.common.process.disk import read_small
from dimos_streams.common.process.ownership import stranger_with
from dimos_streams.common.readable.shortening import beginning
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.tool_stream.event import MAX_UTIME, MIN_UTIME

_FILE_BYTES = 256_000_000
"""Maximum size of a file that is read, in bytes: five times that of a mission of 10,000 turns."""
_MAX_NUMBER = 2**53
MAX_OFFSET = 2**63 - 1
_SHOWN = 200
_logger = logging.getLogger(__name__)


def _with_numbers_of_a_record(event: AgentEvent) -> AgentEvent:
    """Raises ``ValueError`` for numbers that no event has: others compute with them."""
    if not 1 <= event.number <= _MAX_NUMBER:
        raise ValueError(f"number is {event.number}; valid: 1 to {_MAX_NUMBER}")
    if not MIN_UTIME <= event.utime <= MAX_UTIME:
        raise ValueError(f"utime is {event.utime}; valid: {MIN_UTIME} to {MAX_UTIME}")
    return event


class RecordLine(BaseModel):
    """One line of the record."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    offset: Annotated[int, Field(ge=0, le=MAX_OFFSET)]
    event: Annotated[AgentEvent, AfterValidator(_with_numbers_of_a_record)]


@dataclass(slots=True, kw_only=True)
class RecordedMission:
    """A mission as it was read from its file."""

    id: str
    input: str
    """The operator's input with which it began."""
    start: AgentEvent
    """The event of its beginning."""
    path: Path
    lines: list[RecordLine] = field(default_factory=list)

    @property
    def agent(self) -> str:
        """The name of its agent."""
        return self.start.agent

    @property
    def events(self) -> list[AgentEvent]:
        """The events of the mission, in order."""
        return [line.event for line in self.lines]

    @property
    def done(self) -> AgentEvent | None:
        """The event of its end, or None while it is not over."""
        return next((event for event in self.events if event.kind == EventKind.DONE), None)

    @property
    def end(self) -> DoneData | None:
        """The data of that event."""
        return EventKind.DONE.data_of(self.done) if self.done else None

    @property
    def usage(self) -> list[UsageData]:
        """The usage of its models, request by request."""
        return [data for event in self.events if (data := EventKind.USAGE.data_of(event))]

    @property
    def undone(self) -> list[str]:
        """The ids of its calls that were taken back, in that order. Its reason stays what it was."""
        ends = (EventKind.UNDO.data_of(event) for event in self.events)
        return [end["call_id"] for end in ends if end and end["phase"] == "end" and end["how"] == "undone"]


def read_missions(directory: Path, agent: str | None = None) -> list[RecordedMission]:
    """The missions that a directory has, oldest first; of one agent, if it is named. The general files are not read,
    nor files without the beginning of the mission whose name they have.

    Those of one agent are in the order of their numbers, whatever became of the machine's clock; those of several
    agents, which number apart from each other, are merged by their times.
    """
    found: dict[str, list[RecordedMission]] = {}
    for path in mission_files(directory, agent):
        mission = _mission(path, list(read_lines(path)))
        if mission is not None and agent in (None, mission.agent):
            found.setdefault(mission.agent, []).append(mission)
    by_number = (sorted(each, key=lambda mission: mission.lines[0].event.number) for each in found.values())
    return list(heapq.merge(*by_number, key=lambda mission: mission.lines[0].event.utime))


def _mission(path: Path, lines: list[RecordLine]) -> RecordedMission | None:
    """Return the mission that a file is about, or None if its beginning is not among the lines."""
    for event in (line.event for line in lines):
        start = EventKind.MISSION_START.data_of(event)
        if start and path.name == file_name(event.agent, start["id"]):
            return RecordedMission(id=start["id"], input=start["text"], start=event, path=path, lines=lines)
    return None


def read_general(directory: Path, agent: str) -> list[RecordLine]:
    """The events of an agent apart from missions, as far as they are kept."""
    path = directory / file_name(agent, GENERAL)
    files = (path.with_suffix(OLD), path.with_suffix(OUTDATED), path)
    return [line for each in files for line in read_lines(each)]


def is_outdated(directory: Path, agent: str) -> bool:
    """Return whether an agent could not write down what an operator had set last."""
    return (directory / file_name(agent, GENERAL)).with_suffix(OUTDATED).exists()


def read_lines(path: Path) -> Iterator[RecordLine]:
    """Yield the lines of one file that can be read; none if there is no such file. One line is logged of a file,
    however much of it is skipped."""
    skipped, first = 0, ""
    for number, text in enumerate(io.BytesIO(_content(path)), 1):
        if text == b"\n":
            continue
        try:
            yield _parsed(text)
        except ValueError as error:
            why = problem_of(error, "the line")
            skipped, first = skipped + 1, first or f"line {number} is damaged and skipped: {beginning(why, _SHOWN)}"
    if skipped:
        more = f" (and {skipped - 1} more)" if skipped > 1 else ""
        _logger.warning("%s: %s%s", printable(str(path)), printable(first), more)


def _content(path: Path) -> bytes:
    """The bytes of a file; none if it can't be read or is not to be trusted."""
    try:
        if (user := stranger_with(path)) is not None:
            raise OSError(f"{path} belongs to user {user}")
        return read_small(path, _FILE_BYTES)
    except FileNotFoundError:
        return b""
    except OSError as error:
        _logger.warning("left out of the mission record: %s", printable(str(error)))
        return b""


def _parsed(text: bytes) -> RecordLine:
    """Raises ``ValueError`` for what is no line of a record; pydantic's ``ValidationError`` is one."""
    line = RecordLine.model_validate(parse_json(text))
    check_data(line.event)
    return line
