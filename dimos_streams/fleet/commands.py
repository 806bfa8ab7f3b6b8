"""Commands on their way from the hub to a robot's bridge, and the bridge's answers.

A robot holds one ``GET /fleet/robots/{robot}/commands?stream=ID&process=ID``, a stream of server-sent events to which
it gives a new ``StreamId``; its ``ProcessId`` tells it from another robot with its name and token. Its first event is
``hello`` with a ``Hello``, then come events ``command`` with a ``Command`` each. A robot that asks again gets what is
neither answered nor expired once more: it knows by the key what it has carried out.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from dimos_streams.common.names import MAX_NAME
from dimos_streams.fleet.protocol import (
    MAX_EXPIRES_AT_S,
    MAX_KEY,
    PROTOCOL,
    CommandId,
    FleetMessage,
    RobotName,
    StreamId,
    Whole,
)

Method = Literal["GET", "POST"]
Role = Literal["operator", "model"]
"""``operator``: whoever asks has an operator's rights at the hub. ``model``: it is, or speaks for, a model; what it
begins has a caller that begins with ``mcp/``, whose calls pass the bridge's gates for MCP clients."""
Outcome = Literal["answered", "expired", "refused"]


class Hello(FleetMessage):
    """The first event of a stream of commands."""

    protocol: Whole = PROTOCOL
    version: str
    hub: str
    """The name of the hub's process, another one after its database has lost something: what it has is to be asked
    again."""
    robot: RobotName
    doubled: bool = False
    """True if two processes have taken turns as this robot lately: see ``two_robots``."""


class Command(FleetMessage):
    """A request that a robot's bridge is to get as if whoever asks had sent it there."""

    id: CommandId
    """A number that grows with time, among the commands of one robot."""
    key: Annotated[str, Field(min_length=1, max_length=MAX_KEY)]
    """The idempotency key. A robot carries out one command of a key, across its restarts, and answers another one of
    the same key with what it answered to the first."""
    stream: StreamId
    """The stream on which the hub sent it, from whose request ``expires_at_s`` counts. Whoever is in between can keep
    a command back and deliver it on a later stream, where the same number means a later time: a robot carries out no
    command of another stream, and does not answer it, as the hub sends again what is still valid."""
    expires_at_s: Annotated[float, Field(ge=0, le=MAX_EXPIRES_AT_S)]
    """Time at which it expires, in seconds after this stream's request reached the hub, by the hub's monotonic clock.

    The robot adds it to the reading of its own monotonic clock (one that counts suspended time too) from before it
    sent that request. The request came later than it was sent, so the robot's moment is never after the hub's: a
    command that was held up on the way is found to be stale, and no clock is compared with another machine's.
    """
    asked_by: Annotated[str, Field(max_length=MAX_NAME)]
    """The name of whoever asks, for people and logs."""
    role: Role
    method: Method
    path: Annotated[str, Field(pattern="^/[!-~]*$", max_length=2000)]
    """The path in the bridge's HTTP interface, with its query."""
    body: dict[str, Any] | None = None


class Answer(FleetMessage):
    """Body of ``POST /fleet/robots/{robot}/answers``: what became of a command. It is sent until the hub has taken
    it; one to a command that the hub has forgotten is taken as well."""

    protocol: Whole = PROTOCOL
    id: CommandId
    outcome: Outcome
    """``answered``: the bridge has said what follows. ``expired``: it came too late, and was not carried out.
    ``refused``: the robot does not take such commands, and did nothing."""
    status: Annotated[Whole, Field(ge=100, le=599)]
    headers: dict[Literal["Location", "Link"], Annotated[str, Field(max_length=2000)]] = Field(default_factory=dict)
    body: Any = None
    """JSON; a problem (RFC 9457) if the outcome is not ``answered``."""


def two_robots(name: str) -> str:
    """The trouble of two processes that take turns as one robot, in words."""
    return f"two robots call themselves {name!r}: give each a name and token of its own"


def began_nothing(outcome: Outcome, status: int) -> bool:
    """Return whether an answer to a request for a call says that none was begun: its idempotency key is free."""
    return outcome != "answered" or status == 503 or 400 <= status < 500


def is_last_word(outcome: Outcome, status: int, body: Any) -> bool:
    """Return whether everybody who asks for the same call by the same key gets this answer. Otherwise the bridge is
    asked again: it knows by the key what it has begun."""
    timed_out = isinstance(body, dict) and body.get("waited") == "timed_out"
    return outcome == "answered" and status < 400 and not timed_out
