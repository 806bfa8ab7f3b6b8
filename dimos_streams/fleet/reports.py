"""A robot's state as it reports it: what it offers and how it is."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dimos_streams.fleet.protocol import (
    MAX_TEXT,
    PROTOCOL,
    Count,
    FleetMessage,
    JournalId,
    SoftwareVersion,
    Utime,
    Whole,
)
from dimos_streams.tool_stream.gateway import OfferedSkill

_MAX_NOTES = 50
_MAX_SKILLS = 1000


class RobotReport(FleetMessage):
    """Body of ``POST /fleet/robots/{robot}/reports``."""

    protocol: Whole = PROTOCOL
    version: SoftwareVersion
    sent_utime: Utime
    """The robot's clock when it sent this, µs since the Unix epoch: only shown, nothing is decided by it."""
    journal: JournalId
    """The journal that it writes now."""
    last_offset: Count
    """The newest offset in it, so that the hub can say how much is still to come."""
    status: Annotated[str, Field(max_length=50)]
    """The status as in the bridge's ``/healthz``: ``ok`` or ``degraded``."""
    notes: Annotated[tuple[Annotated[str, Field(max_length=MAX_TEXT)], ...], Field(max_length=_MAX_NOTES)] = ()
    """The things that are not well, a line each."""
    open_calls: Count = 0
    modules: Count = 0
    stopped: bool = False
    """True if an operator has stopped it, or a part of it, and not released it."""
    robots: Annotated[tuple[Annotated[str, Field(max_length=200)], ...], Field(max_length=200)] = ()
    """Namespaces of the robots in its run, if it has several."""
    skills: Annotated[list[OfferedSkill], Field(max_length=_MAX_SKILLS)] | None = None
    """The skills that it offers; None if they are as in its last report."""
    skills_left_out: Count = 0


class Reported(FleetMessage):
    """The answer to a report."""

    protocol: Whole = PROTOCOL
    version: str
    wants_skills: bool = False
    """True if the hub does not know the robot's skills: the next report, at once, is to have them."""
