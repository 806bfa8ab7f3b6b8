"""The agent as a module of a blueprint."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dimos_streams import clock
from dimos_streams.agent.calls.skill_catalog import offered_to
from dimos_streams.agent.config import SYSTEM_PROMPT, AgentConfig
from dimos_streams.agent.missions.stop_conditions import RobotState
from dimos_streams.agent.operator_skills import OperatorSkills
from dimos_streams.agent.operators.said import MissionIncompleteError, Said
from dimos_streams.agent.policies.skill_selection import SkillSelection
from dimos_streams.agent.skill_warnings import MAX_OWN_TOOLS, called_like_tools, too_many, unmatched
from dimos_streams.client.http_gateway import HttpGateway
from dimos_streams.client.local_gateway import LocalGateway
from dimos_streams.common.json.writing import json_text
from dimos_streams.common.readable.json_cut import cut_to
from dimos_streams.documents.problem import problems_of
from dimos_streams.errors import UserError
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.odometry import OdometryFromPoses, pose_fault
from dimos_streams.messages.planar import planar_pose
from dimos_streams.messages.sensor_msgs import BatteryState
from dimos_streams.module import MAX_STATE, WARNINGS, ConfigFault
from dimos_streams.operator.known_names import AGENT_TOOLS
from dimos_streams.operator.messages.scene import MAX_BYTES, SceneView, ZoneView, scene_state
from dimos_streams.operator.messages.waiting import Waiting
from dimos_streams.operator.robot_orders import NO_ORDER, SAID
from dimos_streams.skill import Call, SkillInfo, skill
from dimos_streams.streams import In, Out
from dimos_streams.tool_stream.gateway import OfferedSkill, SkillGateway
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.review import AskedCall

if TYPE_CHECKING:
    from dimos_streams.agent.context.conversation import Conversation
    from dimos_streams.agent.control.dialogue import Dialogue
    from dimos_streams.agent.core import AgentCore

__all__ = ["SYSTEM_PROMPT", "Agent", "AgentConfig", "MissionIncompleteError", "Said"]

_SPARE_BYTES = 100
"""The number of bytes of a module's state that are kept for what joins its topics."""
_REASON_BYTES = 300
"""Maximum size of the reasons for a pause, and of a question, in a module's state, in bytes of JSON."""


class Agent(OperatorSkills):
    """Reads the tool streams of its calls into its message queue and drives a model with them.

    The caller of its calls is its name. If no bridge answers at the start, it waits for one. It begins with what
    happens from now on, and takes over calls of its name that are open. With a run directory it records its missions
    there, and goes on with those that were not over when an earlier process of it died.
    """

    late_imports = (
        *("jsonschema", "dimos_streams.client.http_session"),
        *("dimos_streams.agent.core", "dimos_streams.agent.models.offline"),
    )
    shared_outputs = frozenset({"hold"})  # whoever holds names itself

    config: AgentConfig
    odom: In[Odometry] = In(required=False, also=OdometryFromPoses, fault=pose_fault, fresh=True)
    battery: In[BatteryState] = In(required=False)
    hold: Out[Hold]

    @classmethod
    def problems(cls, config: Any) -> Iterator[ConfigFault]:
        """See ``Module``: models that do not exist, and gates and conditions that can't be loaded."""
        from dimos_streams.agent.missions.stop_conditions import load_condition
        from dimos_streams.agent.models import check_model
        from dimos_streams.agent.policies.users_gates import load_gate

        agents = config.agents.items()
        wanted: list[tuple[Callable[[str], object], tuple[str, ...], str]] = [
            (check_model, ("model",), config.model),
            *((check_model, ("agents", name, "model"), agent.model) for name, agent in agents if agent.model),
            *((load_gate, ("gates", str(i)), gate) for i, gate in enumerate(config.gates)),
            *(
                (load_condition, ("stop_when", "conditions", str(i)), condition)
                for i, condition in enumerate(config.stop_when.conditions)
            ),
        ]
        for load, path, name in wanted:
            try:
                load(name)
            except UserError as error:
                yield from (ConfigFault(path, str(problem)) for problem in problems_of(error, ""))

    @classmethod
    def skill_warnings(
        cls, config: Any, name: str, skills: Mapping[str, Sequence[SkillInfo]]
    ) -> Iterator[ConfigFault]:
        """See ``Module``: entries of ``skills`` that mean none, more tools than a model's server takes, and skills
        that are called like tools of the agent's own."""
        near = offered_to(
            name,
            [
                OfferedSkill(**info.model_dump(), module=module, available=True)
                for module, infos in skills.items()
                for info in infos
            ],
        )
        yield from unmatched(config, name, near)
        gets = list(filter(SkillSelection(config.skills, name).has, near))
        for text in (
            too_many(config.model_limits(config.model).tools, len(gets), MAX_OWN_TOOLS),
            called_like_tools(gets, AGENT_TOOLS),
        ):
            if text:
                yield ConfigFault(("skills",), text)

    async def start(self) -> None:
        """See ``Module``. Raises ``UserError`` for a model or a gate that does not exist."""
        # Only an agent that runs needs its parts: code that reads a blueprint needs its config and its skills.
        from dimos_streams.agent.core import AgentCore
        from dimos_streams.agent.memory import AgentMemory
        from dimos_streams.agent.record.record_files import FOLDER
        from dimos_streams.agent.resumption.reader import read_resumption

        run_dir = self.context.run_dir
        record_dir = run_dir / FOLDER if run_dir else None
        before = read_resumption(record_dir, self.name) if record_dir else None
        kept = before.settings.model if before is not None else ""
        await self._load_for(self.config.model, kept, *(agent.model for agent in self.config.agents.values()))
        self._gateway = self._choose_gateway()
        self.core = AgentCore(
            self.config,
            AgentMemory(self.config, self.name, record_dir=record_dir, before=before),
            name=self.name,
            gateway=self._gateway,
            rng=self.random,
            run_dir=run_dir,
            robot=self._robot,
            directory=self.context.services.get(ModuleDirectory),
        )
        for shown in (self.core.skill_watch.changed, self.core.oversight.robot_stops.stop_said):
            shown.add(self._show_state)
        self._show_state()
        self.core.record.open()
        self.health = "waits for the bridge"

    @property
    def conversation(self) -> Conversation:
        """The conversation so far."""
        return self.core.conversation

    async def run(self) -> None:
        """See ``Module``."""
        self.spawn(self.core.oversight.robot_hold.run(self.hold.publish, self.hold.channel), name="hold")
        if (before := self.core.memory.before) is not None:
            self.spawn(self.core.operators.console.go_on(before.settings.watched), name="console")
        offset = await self.core.recovery.run(self.random, self._wait_for_bridge)
        self.health = "ok"
        self.spawn(self._keep_showing(), name="state")
        self.spawn(self.core.recovery.tidy_up(), name="tidy-up")
        self.spawn(self.core.skill_watch.run(), name="skill-watch")
        await self.core.run(offset)

    async def stop(self) -> None:
        """See ``Module``."""
        core = getattr(self, "core", None)
        gateway = getattr(self, "_gateway", None)
        try:
            if core is not None:
                core.pause_what_may_move()
                self._hold_on(core)  # before all that waits for others
                await core.close()
                self._hold_on(core)
        finally:
            if isinstance(gateway, HttpGateway):
                gateway.close()

    def _hold_on(self, core: AgentCore) -> None:
        if core.holding and self.hold.wanted:
            self.hold.publish(core.oversight.robot_hold.message())

    def foreground(self) -> contextlib.AbstractAsyncContextManager[Dialogue]:
        """A dialogue with the operator that nothing interrupts: ``async with agent.foreground() as dialogue``."""
        return self._core().foreground.dialogue()

    @skill(audience="operator")
    async def say(self, call: Call, text: str, now: bool = False) -> Said:
        """Tell the agent something, and hear what it says and does until the mission is over.

        Cancelling it cancels the calls that it led to. It fails if the mission does not complete; its result then
        has the reason.

        Args:
            text: What to tell the agent, for instance "follow the person in red". A stop acts at once.
            now: Cut the present answer of the model, and let the text be the next that it hears; calls go on.
        """
        return await self._core().operators.input_handler.say(call, text, now=now)

    @skill(audience="bridge")
    async def review_call(self, call: Call, call_id: str, parent: str, skill: str, arguments: dict[str, Any]) -> None:
        """Judge a call that a skill asks for on this agent's behalf, as if the model made it.

        Open until the bridge says what became of the call.

        Args:
            call_id: Its id.
            parent: The id of the call whose skill asks for it.
            skill: What is to be called.
            arguments: With what.
        """
        await self._core().reviews.review(call, AskedCall(call_id, parent, skill, arguments))

    async def _keep_showing(self) -> None:
        """Show what waits for an operator, whenever that is something else. Most events change nothing of it."""
        changed, shown = asyncio.Event(), None
        self.core.changed.add(changed.set)
        while True:
            if (waiting := self._waiting()) != shown:
                shown = waiting
                self._show_state()
            await changed.wait()
            changed.clear()

    def _waiting(self) -> Waiting:
        control = self.core.control
        return Waiting(
            mode=control.mode.value,
            paused_for=cut_to(control.paused_for, _REASON_BYTES),
            approvals=self.core.gate_state.approvals.waiting,
            question=cut_to(self.core.foreground.question, _REASON_BYTES),
        )

    def _show_state(self) -> None:
        """Show what may be wrong, what waits for an operator, and where the zones are, as far as there is room."""
        found = self.core.skill_watch.warnings
        said = self.core.oversight.robot_stops.said
        stops = {SAID: said} if said != NO_ORDER else {}
        warnings = ({WARNINGS: list(found)} if found else {}) | self._waiting().state() | stops
        zones = tuple(ZoneView(name=zone.name, polygon=zone.polygon) for zone in self.config.zones)
        room = MAX_STATE - len(json_text(warnings).encode()) - _SPARE_BYTES
        self.report_state({**warnings, **scene_state(SceneView(zones=zones), min(MAX_BYTES, room))})

    def _wait_for_bridge(self, why: str) -> None:
        self.health = why

    def _robot(self) -> RobotState:
        odometry, battery = self.odom.latest, self.battery.latest
        level = battery.percentage if battery is not None else math.nan
        known = level if 0 <= level <= 1 else None
        pose = None if odometry is None else planar_pose(odometry.pose.pose)
        if pose is None:
            return RobotState(battery=known)
        x, y, yaw = pose
        return RobotState(x=x, y=y, yaw=yaw, battery=known)

    def _choose_gateway(self) -> SkillGateway:
        services = self.context.services
        if clock.is_virtual() or services.get(SkillGateway) is not None:  # type: ignore[type-abstract]
            return LocalGateway(services)
        return HttpGateway(self.context.bridge_url, rng=self.random, token=self.context.token)
