"""The state of a run, or of one agent's part of it, as the bridge knows it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.operator.messages.agent import AgentSnapshot
from dimos_streams.operator.messages.scene import SceneView
from dimos_streams.operator.messages.stop import GoingOn, StoppedRobots


class CallLine(FrozenModel):
    """A call that is not closed, as the broker knows it."""

    call_id: str
    skill: str
    module: str
    caller: str
    parent: str
    arguments: dict[str, Any]
    state: Literal["requested", "open"]
    text: str
    """The text of its newest event."""
    progress: dict[str, float | bool | str | None] = Field(default_factory=dict)
    """The values in its newest progress that are no lists or objects: the first 32, long texts shortened."""
    resources: tuple[str, ...]
    requested_utime: int


class SkillLine(FrozenModel):
    """A skill that a module offers."""

    name: str
    module: str
    description: str
    available: bool
    audience: str
    agent: bool
    """True if its module is an agent."""


class ModuleLine(FrozenModel):
    """A module of the run."""

    name: str
    pid: int
    health: str
    """``ok``, or what is wrong."""
    alive: bool
    state: dict[str, Any] = Field(default_factory=dict)
    """The state that it reports, by topics: ``velocity_gate`` for instance."""


class RobotView(FrozenModel):
    """The place of a robot (metres, radians) and the charge of its battery; None for what was not heard of lately."""

    frame_id: str = ""
    x: float | None = None
    y: float | None = None
    yaw: float | None = None
    battery: float | None = None
    """0 (empty) to 1 (full)."""


class MonitorSnapshot(FrozenModel):
    """The state of a run, or of one agent's part of it."""

    agents: dict[str, AgentSnapshot]
    """The agents that have reported, by the names of their modules."""
    calls: tuple[CallLine, ...]
    """Those that are not closed, oldest first."""
    leases: dict[str, str]
    """Held resources with the ids of their calls."""
    skills: tuple[SkillLine, ...]
    modules: tuple[ModuleLine, ...]
    robots: dict[str, RobotView]
    """The robots of which something is known, by namespace (``""``, ``"robot1"``)."""
    watchers: int
    """Connections to the monitor."""
    stopped: StoppedRobots = Field(default_factory=StoppedRobots)
    """The robots that an operator has stopped."""
    not_ending: tuple[GoingOn, ...] = ()
    """Calls that were asked to end and go on all the same."""
    scene: dict[str, SceneView] = Field(default_factory=dict)
    """The things to be drawn on a map besides robots, by namespace, as far as some are known."""


class MonitorChange(FrozenModel):
    """Fields of a ``MonitorSnapshot`` that have changed, each with its whole new value."""

    agents: dict[str, AgentSnapshot] | None = None
    calls: tuple[CallLine, ...] | None = None
    leases: dict[str, str] | None = None
    skills: tuple[SkillLine, ...] | None = None
    modules: tuple[ModuleLine, ...] | None = None
    robots: dict[str, RobotView] | None = None
    watchers: int | None = None
    stopped: StoppedRobots | None = None
    not_ending: tuple[GoingOn, ...] | None = None
    scene: dict[str, SceneView] | None = None
