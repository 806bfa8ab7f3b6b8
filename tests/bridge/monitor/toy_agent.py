"""A stand-in for an agent that reports and takes an operator's commands."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Literal

from dimos_streams import clock
from dimos_streams.errors import ConflictError, SkillError
from dimos_streams.module import Module, ModuleConfig, RunContext, Services
from dimos_streams.operator.messages.agent import (
    AgentEvent,
    AgentSnapshot,
    ApprovalView,
    ConversationEntry,
    MissionView,
    QueueView,
    Usage,
)
from dimos_streams.operator.messages.hold import HoldView
from dimos_streams.operator.reporting import event_data, snapshot_data
from dimos_streams.skill import Call, skill
from tests.bridge.scene import Scene, Worker


class ToyConfig(ModuleConfig):
    """Nothing to set."""


class Held(HoldView):
    """A command's result with a text."""

    text: str

    def __str__(self) -> str:
        return self.text


class ToyAgent(Module):
    """An agent as far as operators can see; the test decides what happens in it."""

    config: ToyConfig

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.number = 0
        self.state = "idle"
        self.conversation: list[ConversationEntry] = []
        self.commands: list[tuple[str, dict[str, Any]]] = []
        self.approval: ApprovalView | None = None
        self.whole: ApprovalView | None = None
        self.disabled: set[str] = set()
        self.held: tuple[str, ...] = ("gate",)
        self.busy_s = 1000.0
        """The time for which it works at what it is told."""
        self.reports: dict[str, asyncio.Queue[AgentEvent | AgentSnapshot]] = {}

    def emit(self, kind: str, **data: Any) -> None:
        self.number += 1
        self._publish(AgentEvent(number=self.number, utime=clock.utime(), agent=self.name, kind=kind, data=data))

    def show(self) -> None:
        self._publish(self.snapshot())

    def snapshot(self) -> AgentSnapshot:
        return AgentSnapshot(
            agent=self.name,
            utime=clock.utime(),
            number=self.number,
            state=self.state,
            model="offline",
            usage=Usage(requests=self.number, cost=0.25),
            queue=QueueView(waiting=0, capacity=1000),
            missions=(MissionView(id="m1", text="follow ann", utime=clock.utime()),),
            approvals=(self.approval,) if self.approval is not None else (),
            disabled_skills=tuple(sorted(self.disabled)),
            conversation=tuple(self.conversation[-20:]),
            watched=bool(self.reports),
        )

    def _publish(self, message: AgentEvent | AgentSnapshot) -> None:
        for queue in self.reports.values():
            queue.put_nowait(message)

    @skill(audience="operator")
    async def report(self, call: Call) -> None:
        """Report."""
        queue = self.reports[call.id] = asyncio.Queue()
        try:
            call.progress("", **snapshot_data(self.snapshot()))
            while True:
                message = await queue.get()
                if isinstance(message, AgentEvent):
                    await call.update(message.kind, **event_data(message))
                else:
                    call.progress("", **snapshot_data(message))
        finally:
            del self.reports[call.id]

    @skill(audience="bridge")
    async def review_call(self, call_id: str, parent: str, skill: str, arguments: dict[str, Any]) -> None:
        """Refuse whatever a skill asks for."""

    @skill(audience="operator")
    async def say(self, call: Call, text: str, now: bool = False) -> str:
        """Say something."""
        await call.update(f"heard {text}")
        self.conversation.append(ConversationEntry(number=len(self.conversation) + 1, role="operator", text=text))
        await asyncio.sleep(self.busy_s)
        return "done"

    @skill(audience="operator")
    async def pause(self, reason: str = "") -> Held:
        """Pause."""
        return Held(held=self.held, text=self._note("pause", reason=reason))

    @skill(audience="operator")
    async def resume(self, reason: str = "") -> str:
        """Resume."""
        if self.state != "paused":
            raise SkillError("the agent is not paused")
        return self._note("resume", reason=reason)

    @skill(audience="operator")
    async def step(self, mode: Literal["on", "off", "once"] = "once", waiting: str = "") -> str:
        """Step."""
        return self._note("step", mode=mode, **({"waiting": waiting} if waiting else {}))

    @skill(audience="operator")
    async def abort(self, rollback: bool = False, reason: str = "") -> Held:
        """Abort."""
        return Held(held=self.held, text=self._note("abort", rollback=rollback, reason=reason))

    @skill(audience="operator")
    async def undo(self, count: int = 1) -> str:
        """Undo."""
        return self._note("undo", count=count)

    @skill(audience="operator")
    async def forget(self) -> str:
        """Begin a new conversation."""
        return self._note("forget")

    @skill(audience="operator")
    async def approvals(self, approval: str = "") -> list[ApprovalView]:
        """Pending approvals, or one of them whole."""
        shown = self.whole if approval else self.approval
        return [shown] if shown is not None else []

    @skill(audience="operator")
    async def decide(
        self,
        approval: str,
        decision: Literal["approve", "reject", "delete"],
        arguments: dict[str, Any] | None = None,
        reason: str = "",
        revision: int | None = None,
    ) -> str:
        """Decide."""
        if self.approval is None or self.approval.id != approval:
            raise SkillError(f"no approval {approval!r} is pending")
        if revision not in (None, self.approval.revision):
            raise ConflictError(f"approval {approval!r} has another revision", result=self.approval)
        self.approval = None
        return self._note("decide", approval=approval, decision=decision, arguments=arguments, reason=reason)

    @skill(audience="operator")
    async def amend(self, approval: str, arguments: dict[str, Any], revision: int | None = None) -> str:
        """Amend."""
        return self._note("amend", approval=approval, arguments=arguments)

    @skill(audience="operator")
    async def set_skill(self, skill: str, enabled: bool) -> str:
        """Enable or disable."""
        (self.disabled.discard if enabled else self.disabled.add)(skill)
        return self._note("set_skill", skill=skill, enabled=enabled)

    def ask(self, id: str = "a1") -> None:
        """Let a call wait for approval."""
        self.approval = ApprovalView(
            id=id,
            agent=self.name,
            skill="follow",
            module="worker",
            arguments={"description": "ann"},
            reason="approval: ask",
            created_utime=clock.utime(),
        )
        self.show()

    def _note(self, name: str, **arguments: Any) -> str:
        self.commands.append((name, arguments))
        self.state = {"pause": "paused", "resume": "idle"}.get(name, self.state)
        self.emit("control", command=name)
        self.show()
        return f"{name} is done"


def _context(name: str) -> RunContext:
    namespace, slash, _ = name.rpartition("/")
    return RunContext(namespace=f"{namespace}{slash}", services=Services())


@contextlib.asynccontextmanager
async def agents(*names: str, **bridge_config: Any) -> AsyncIterator[tuple[Scene, dict[str, ToyAgent]]]:
    """A bridge, a worker, and agents that it knows."""
    scene = Scene(**bridge_config)
    await scene.inner.open()
    try:
        await scene.start_bridge()
        await scene.add(Worker(name="worker"))
        made = {name: ToyAgent(name=name, context=_context(name)) for name in names}
        for agent in made.values():
            await scene.add(agent)
        await scene.offered("follow")
        for name in names:
            await scene.offered(f"{name.rpartition('/')[0]}_say".removeprefix("_"))
        yield scene, made
    finally:
        await scene.close()
