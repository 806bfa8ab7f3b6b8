"""The version of the protocol between robots and a fleet hub, its names and its limits."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.tool_stream.event import MAX_UTIME

PROTOCOL = 1
"""The version of the protocol. Both sides must speak the same one: the hub refuses others with ``FLEET_VERSION``;
nothing is lost."""

MAX_ENTRIES = 512
"""Maximum number of events and gaps in one batch."""
MAX_BATCH_BYTES = 192 * 1024
"""Maximum size of a batch's body, in bytes; a single event is always smaller."""
MAX_ANSWER_BYTES = 192 * 1024
"""Maximum size of a bridge's answer to a command, as JSON, in bytes."""
MAX_COMMAND_DEPTH = 100
"""Maximum depth of a command's body; an object or a list is a level. That is more than any bridge takes, and less
than robots can read."""
MAX_REPORT_BYTES = 192 * 1024
"""Maximum size of a report, in bytes; skills that have no room in it are left out, and counted."""
MAX_OFFSET = 2**53 - 1
MAX_KEY = 400
MAX_TEXT = 1000

COMMANDS_PING_S = 2.0
"""Time, in seconds, after which a stream of commands that has nothing to say sends a comment."""
COMMANDS_SILENCE_S = 8.0
"""Time, in seconds, after which a robot that heard nothing on a stream takes it for dead and asks for another."""
COMMANDS_AGE_S = 600.0
"""Age, in seconds, at which the hub ends a stream of commands; a robot ends one that is a little older: two monotonic
clocks count apart by 0.1 s at most in such a time."""
CLOCK_MARGIN_S = 0.2
"""Time, in seconds, before its expiry from which on a command counts as expired."""
REPORT_EVERY_S = 20.0
"""Longest time, in seconds, between two reports of a robot; it also reports at once when its skills change."""
DEFAULT_EXPIRY_S = 10.0
MAX_EXPIRY_S = 300.0
"""Longest time, in seconds, for which a command is valid; the hub sends none that would be valid for longer. A robot
remembers for as long which commands an order has overtaken."""
MAX_EXPIRES_AT_S = 2 * COMMANDS_AGE_S + MAX_EXPIRY_S
"""Maximum of ``expires_at_s``, for a command on a stream that is old already."""

# The ends of the types of problems (RFC 9457) on which a robot does more than try again later.
FOREIGN_ROBOT = "foreign-robot"
"""403: the token is another robot's, or nobody's."""
FLEET_VERSION = "fleet-version"
"""409: the hub speaks another version of the protocol. Try again now and then: either may be replaced."""
FLEET_POSITION = "fleet-position"
"""409, with ``acknowledged``: the batch begins behind the offset that would be next. Go on from there."""
FLEET_CONFLICT = "fleet-conflict"
"""409, with ``offset``: another event is stored at that offset. The journal has lost its end and was written anew:
what comes from that offset on belongs into a journal with an id of its own."""
FLEET_ENTRY = "fleet-entry"
"""422, with ``offset``: what is there is no event. A gap in its place lets the others pass."""
HUB_UNAVAILABLE = "hub-unavailable"
"""503, with ``Retry-After``: the hub can't store anything now. All that it has acknowledged is safe."""

ROBOT_NAME = "^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$"
JOURNAL_ID = "^[A-Za-z0-9_-]{8,64}$"
STREAM_ID = "^[A-Za-z0-9_-]{16,64}$"

RobotName = Annotated[str, Field(pattern=ROBOT_NAME)]
JournalId = Annotated[str, Field(pattern=JOURNAL_ID)]
StreamId = Annotated[str, Field(pattern=STREAM_ID)]
"""The random name that a robot gives to a stream of commands when it asks for it; each stream has another one."""
ProcessId = Annotated[str, Field(pattern=STREAM_ID)]
"""The random name that a robot's process gives to itself when it begins."""
Whole = Annotated[int, Field(strict=True)]
"""An integer of JSON: ``"2"``, ``2.0`` and ``true`` are refused."""
Offset = Annotated[Whole, Field(ge=1, le=MAX_OFFSET)]
CommandId = Offset
"""The number that a hub has given to a command, see ``Command.id``."""
SoftwareVersion = Annotated[str, Field(max_length=100, pattern="^[ -~]*$")]
"""A version of this package. A text that goes into a database as it is may not have every character."""
Count = Annotated[Whole, Field(ge=0, le=MAX_OFFSET)]
"""A number of things, or an offset that may be none yet."""
Utime = Annotated[Whole, Field(ge=0, le=MAX_UTIME)]
"""A time, µs since the Unix epoch."""


class FleetMessage(FrozenModel):
    """The base of all messages: frozen, and an unknown field is an error."""
