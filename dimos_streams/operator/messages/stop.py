"""An operator's stop of robots: what is stopped, and what became of the order."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dimos_streams.common.names import is_in
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.common.schemas.json_model import JsonModel
from dimos_streams.operator.messages.hold import HoldView, VelocityGateNotHeld
from dimos_streams.operator.messages.message import OptionalName, Text
from dimos_streams.tool_stream.event import MAX_UTIME

EVERY_ROBOT = "every robot"
SeenStops = Annotated[tuple[Annotated[int, Field(ge=0, le=MAX_UTIME)], ...], Field(max_length=1000)]
"""Stops by their ``utime``, of any robots."""


class RobotOrder(JsonModel):
    """Body of ``POST /robots/stop`` and ``/calls/cancel``; it may be left out."""

    robot: OptionalName = ""
    """The robot's namespace, empty for every robot."""
    reason: Text = ""


class ReleaseOrder(RobotOrder):
    """Body of ``POST /robots/release``; it may be left out."""

    seen: SeenStops | None = None
    """The stops that whoever asks has seen. The release is refused if it would undo another one, so one that was long
    under way undoes no newer stop. Without it all are released that there are."""


class Stop(FrozenModel):
    """An operator's order that a robot stand still until it is released."""

    robot: str
    """The robot's namespace, empty for every robot."""
    utime: int
    """The time at which it was given, µs since the Unix epoch. A release names it by this."""
    reason: str = ""


class GoingOn(FrozenModel):
    """A call that was asked to end and has not."""

    call_id: str
    skill: str
    module: str
    since_utime: int
    """The time at which it was asked to end, µs since the Unix epoch."""
    text: str
    """The text of its last event."""

    def __str__(self) -> str:
        return f"{self.skill} [{self.call_id}] of {self.module}"


class StoppedRobots(FrozenModel):
    """The robots that are stopped now, and what their velocity gates say of it."""

    stops: tuple[Stop, ...] = ()
    released: tuple[str, ...] = ()
    """Robots that were released while every other one stays stopped."""
    held: tuple[str, ...] = ()
    not_held: tuple[VelocityGateNotHeld, ...] = ()

    def kept_still(self, stop: Stop) -> str:
        """Return whom an order keeps still, in words: robots that were released from it are named."""
        released = ", ".join(robot for robot in self.released if is_in(robot, stop.robot))
        return f"{stop.robot or EVERY_ROBOT}{f' but {released}' if released else ''}"


class CancelReport(FrozenModel):
    """The outcome of an order that calls end."""

    ended: tuple[str, ...] = ()
    """Ids of calls that have ended."""
    going_on: tuple[GoingOn, ...] = ()
    """Calls that have not ended within the bound; they are asked again and again."""

    @property
    def confirmed(self) -> bool:
        """True if all have ended."""
        return not self.going_on

    def __str__(self) -> str:
        if self.going_on:
            return f"STILL GOING ON: {'; '.join(map(str, self.going_on))}"
        count = len(self.ended)
        return f"{count} {'call has' if count == 1 else 'calls have'} ended" if count else "no call was open"


class StopReport(HoldView):
    """The outcome of an order that a robot, or every one, stand still."""

    robot: str
    """Empty for every robot."""
    calls: CancelReport = Field(default_factory=CancelReport)
    """The motions that were under way."""
    released: tuple[str, ...] = ()
    """Robots of those that were stopped which a later order has released before this one was confirmed."""
    unsaved: str = ""
    """The reason why a bridge that is started again would not know of the order, empty if it would."""

    @property
    def confirmed(self) -> bool:
        """True if each velocity gate holds, there is one for each robot, no motion goes on, the order is kept, and no
        release came after it."""
        return super().confirmed and self.calls.confirmed and not self.released and not self.unsaved

    def __str__(self) -> str:
        any_motion = self.calls.ended or self.calls.going_on
        motions = str(self.calls) if any_motion else "no motion was under way"
        parts = [self._standing(), motions]
        if self.unsaved:
            parts.append(f"NOT KEPT: a bridge that is started again would not hold: {self.unsaved}")
        return "; ".join(parts)

    def _standing(self) -> str:
        """Say which robots stand, and which of them may not."""
        robot = self.robot or EVERY_ROBOT
        if not self.released:
            return f"{robot} is stopped, {super().__str__()}"
        came = f"NOT stopped: a release came after this stop: {_listed(self.released)} may move again"
        if self.robot in self.released or not (self.held or self.not_held):
            return came
        return f"{came}; else {robot} is stopped, {super().__str__()}"


class ReleaseReport(FrozenModel):
    """The outcome of an order that a robot, or every one, may move again."""

    robot: str
    changed: bool
    """False if it was not stopped."""
    unsaved: str = ""
    """The reason why a bridge that is started again would stop it anew, empty if it would not."""
    still_stopped: tuple[str, ...] = ()
    """Velocity gates that hold all the same: somebody else, as another run on the bus, has stopped the robot too."""
    stopped_again: tuple[str, ...] = ()
    """Robots of those that were released which a later order has stopped before this one was answered."""

    @property
    def confirmed(self) -> bool:
        """True if no velocity gate holds for an operator's stop any more, and no stop came after the release."""
        return not self.still_stopped and not self.stopped_again

    def __str__(self) -> str:
        robot = self.robot or EVERY_ROBOT
        said = f"{self.robot} was not stopped" if self.robot else "no robot was stopped"
        if self.changed:
            said = f"{robot} may move again; nothing goes on by itself"
        if self.still_stopped:
            gates = ", ".join(self.still_stopped)
            said = f"{robot} is released here, but STILL STOPPED by somebody else, as another run: {gates}"
        if self.stopped_again:
            again = _listed(self.stopped_again)
            said = f"{robot} was released, but a stop came after this release; STOPPED AGAIN: {again}"
        return f"{said}; NOT KEPT: {self.unsaved}" if self.unsaved else said


def _listed(robots: tuple[str, ...]) -> str:
    """Name robots; where every robot is meant, only that."""
    return EVERY_ROBOT if "" in robots else ", ".join(robots)
