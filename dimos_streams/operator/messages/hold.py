"""The velocity gates' answer to a hold: only they know whether the robot is kept still."""

from __future__ import annotations

from typing import Literal

from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.operator.messages.kept_report import KeptReport


class VelocityGateNotHeld(FrozenModel):
    """A velocity gate that does not confirm that it holds the robot still."""

    gate: str
    """The gate module's name; the robot's if no gate of it was heard of."""
    problem: Literal["silent", "deaf", "not_holding", "moving", "missing"]
    """It was not heard of, its ``hold`` is not wired, it does not hold for who asks, the base is driven, or there is
    none."""
    text: str
    """The same, for people."""


class HoldView(FrozenModel):
    """The velocity gates' answer to a hold. Only they know whether the robot is kept still."""

    held: tuple[str, ...] = ()
    """Gates that have said that they hold it still for who asks."""
    not_held: tuple[VelocityGateNotHeld, ...] = ()
    """Gates that were heard of and have not."""

    @property
    def confirmed(self) -> bool:
        """True if there is a velocity gate, and each has said that it holds."""
        return bool(self.held) and not self.not_held

    def __str__(self) -> str:
        if self.not_held:
            return f"NOT held: {'; '.join(f'{gate.gate}: {gate.text}' for gate in self.not_held)}"
        if self.held:
            return f"held by {', '.join(self.held)}"
        return "NOT held: no velocity gate was heard, nothing confirms that a robot stands"


class PauseReport(HoldView, KeptReport):
    """The report of a pause. Nothing begins any more in any case."""

    changed: bool
    """False if the agent was paused already."""

    def __str__(self) -> str:
        return self.with_unkept(f"{'paused' if self.changed else 'it is paused already'}, {super().__str__()}")
