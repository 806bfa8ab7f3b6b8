"""The contents of maps besides robots: scenes that modules give in their heartbeats, and agents' plans."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from dimos_streams.common.invalid import first_problem
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.names import namespace_of
from dimos_streams.operator.messages.agent import AgentSnapshot
from dimos_streams.operator.messages.scene import SCENE, SceneView, joined
from dimos_streams.skill import ODOM, public_names
from dimos_streams.tool_stream.liveness.called_skills import called_skills
from dimos_streams.tool_stream.liveness.module_view import ModuleView

_STATES = ("submitted", "approved")

_log = LimitedLog(logging.getLogger(__name__))


class Scenes:
    """Puts scenes together, by namespace. What has not changed is not read again."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[object, SceneView | None]] = {}
        """The state that each module gives for its scene, and the scene that it means, None if it is invalid."""

    def of(self, modules: Sequence[ModuleView], agents: Mapping[str, AgentSnapshot]) -> dict[str, SceneView]:
        """The scene of each namespace of which something is known. A dead module has no goal and no path."""
        saying = {module.name: module for module in modules if SCENE in module.state}
        self._read = {name: read for name, read in self._read.items() if name in saying}
        found: dict[str, list[SceneView]] = defaultdict(list)
        for name, module in saying.items():
            scene = self._scene(name, module.state[SCENE])
            if scene is not None:
                still = scene if module.alive else scene.model_copy(update={"goal": None, "path": ()})
                found[namespace_of(name)].append(still)
        for name, agent in agents.items():
            if steps := _steps_of(agent.plan):
                found[namespace_of(name)].extend(_ways(steps, name, modules))
        return {namespace: joined(scenes) for namespace, scenes in found.items()}

    def _scene(self, module: str, said: object) -> SceneView | None:
        before = self._read.get(module)
        if before is None or before[0] != said:
            before = self._read[module] = (said, _parsed(module, said))
        return before[1]


def _parsed(module: str, said: object) -> SceneView | None:
    try:
        return SceneView.model_validate(said)
    except ValidationError as error:
        _log.warning("the scene of module %r is none: %s", module, first_problem(error, SCENE))
        return None


def _steps_of(plan: Mapping[str, Any] | None) -> list[Any]:
    steps = plan.get("steps") if plan is not None and plan.get("state") in _STATES else None
    return steps if isinstance(steps, list) else []


def _ways(steps: list[Any], agent: str, modules: Sequence[ModuleView]) -> list[SceneView]:
    """The points of a plan's steps that were not made yet, as far as their arguments name points; those in each frame
    by themselves."""
    frames = {called.info.name: called.info.frame for called in called_skills(modules)}
    ways: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for step in steps:
        match step:
            case {"used": True}:
                pass
            case {"skill": str() as skill, "arguments": {"x": float() | int() as x, "y": float() | int() as y}}:
                frame = next((frames[name] for name in public_names(skill, agent) if name in frames), ODOM)
                ways[frame].append((float(x), float(y)))
    return [SceneView(path=tuple(way), frame_id=frame) for frame, way in ways.items()]
