"""Operators who do what comes into their heads, over a link to the bridge, and note what came of it."""

from __future__ import annotations

import asyncio
import itertools
import random
from dataclasses import dataclass, field
from typing import Any

from dimos_streams import clock
from dimos_streams.client.iterators import closing
from dimos_streams.common.tasks import OwnedTasks
from dimos_streams.errors import DimosStreamsError, SkillError, SkillUnavailableError
from dimos_streams.operator.messages.agent import ApprovalView
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from tests.agent.simulation.brain import Mind
from tests.agent.simulation.plan import Step
from tests.agent.simulation.system import System

_ASK_AGAIN_S = (0.2, 0.5, 1.0, 2.0, 4.0)


@dataclass
class Order:
    """An order, and what came of it. Times are on the loop's clock."""

    what: str
    at: float
    arguments: dict[str, Any] = field(default_factory=dict)
    tag: str = ""
    """Of the call that it decides on."""
    call_id: str = ""
    over: float = float("inf")
    outcome: Outcome | None = None
    text: str = ""
    result: Any = None

    @property
    def done(self) -> bool:
        return self.outcome is Outcome.COMPLETED

    @property
    def is_stop(self) -> bool:
        """True if it is said that all is to stop."""
        return self.what == "say" and self.arguments["text"] == "stop"

    def __str__(self) -> str:
        return f"{self.at:9.3f} {self.what} {self.arguments} {self.call_id}: {self.outcome} {self.text[:300]!r}"


class Operators:
    """Carries out the orders of a plan."""

    def __init__(self, system: System, mind: Mind) -> None:
        self.orders: list[Order] = []
        self.tasks = OwnedTasks()
        self._system, self._mind = system, mind
        self._link = system.links["operator"]
        self._numbers = itertools.count(1)

    def act(self, step: Step) -> None:
        """Begin an order; its end is awaited beside."""
        rng = random.Random(f"{step.at} {step.what} {step.dice}")
        agent = self._system.agent
        pending = [] if agent is None else agent.core.gate_state.approvals.pending()
        match step.what:
            case "say" | "say now":
                self._give("say", text=f"do {next(self._numbers)}", now=step.what == "say now")
            case "say stop":
                self._give("say", text="stop", now=False)
            case "pause" | "resume" | "forget" | "typing":
                self._give(step.what)
            case "step on" | "step off":
                self._give("step", mode=step.what.split()[1])
            case "step once":
                seen = [] if agent is None else [call.id for call in agent.core.control.waiting]
                self._give("step", mode="once", waiting=next(iter(seen), ""))
            case "abort" | "rollback":
                self._give("abort", rollback=step.what == "rollback")
            case "undo":
                self._give("undo", count=rng.choice((1, 2, 5)))
            case "approve" | "reject" | "delete" | "change" | "amend" if pending:
                self._decide(step.what, rng.choice(pending))
            case "disable" | "enable":
                self._give("set_skill", skill=rng.choice(("go", "look", "grab")), enabled=step.what == "enable")
            case "model":
                self._give("set_model", model=rng.choice(("openai:brain", "openai:other", "offline")))
            case "operator go" | "operator follow":
                self._give(step.what.split()[1], tag=self._mind.tag("o"), seconds=rng.choice((0.5, 4.0)))
            case "stop robot" | "release robot" | "cancel all" | "set":
                self.tasks.spawn(self.ask(step.what, rng), name=step.what)
            case "cancel call" | "cancel mission":
                self.tasks.spawn(self._cancel(step.what == "cancel mission", rng), name=step.what)

    def _give(self, skill: str, /, tag_: str = "", **arguments: Any) -> None:
        self.tasks.spawn(self.command(skill, tag_, **arguments), name=skill)

    def _decide(self, what: str, view: ApprovalView) -> None:
        arguments: dict[str, Any] = {"approval": view.id, "revision": view.revision}
        if what in ("change", "amend"):
            arguments["arguments"] = {**view.arguments, "seconds": 0.25}
        if what != "amend":
            arguments["decision"] = "approve" if what == "change" else what
        self._give("amend" if what == "amend" else "decide", tag_=str(view.arguments.get("tag")), **arguments)

    async def command(self, skill: str, /, tag_: str = "", **arguments: Any) -> Order:
        """Give an order as a console does, and wait for its end."""
        order = Order(skill, clock.monotonic(), arguments, tag_)
        self.orders.append(order)
        try:
            order.call_id = await self._insist(skill, arguments)
            close = await self._close_of(order.call_id)
            order.outcome, order.text, order.result = close.outcome, close.text, close.data.get("result")
        except DimosStreamsError as error:
            order.text = f"{type(error).__name__}: {error}"
        order.over = clock.monotonic()
        return order

    async def _insist(self, skill: str, arguments: dict[str, Any]) -> str:
        key = f"order {next(self._numbers)}"
        for wait_s in (*_ASK_AGAIN_S, None):
            try:
                return await self._link.call(skill, arguments, caller="operator", idempotency_key=key)
            except SkillUnavailableError:
                if wait_s is None:
                    raise
                await asyncio.sleep(wait_s)
        raise AssertionError("the last attempt has raised")

    async def _close_of(self, call_id: str) -> ToolEvent:
        async with closing(self._link.events(after=0, call_id=call_id)) as events:
            async for entry in events:
                if entry.event.type == "close":
                    return entry.event
        raise SkillError("the stream has ended")

    async def ask(self, what: str, rng: random.Random | None = None) -> None:
        """Give an order to the bridge itself."""
        order = Order(what, clock.monotonic())
        self.orders.append(order)
        try:
            broker = self._link.broker
            if what == "stop robot":
                order.result = await self._link.ask(broker.stops.stop_robot("", "test"))
            elif what == "release robot":
                order.result = await self._link.ask(broker.stops.release(""))
            elif what == "cancel all":
                order.result = await self._link.ask(broker.cancels.cancel_all("", "test"))
            elif rng is not None:
                speed = rng.choice((0.1, 0.5, 1.0))
                order.result = await self._link.ask(broker.settings.change([f"gate.max_speed={speed}"], "operator"))
            order.outcome, order.text = Outcome.COMPLETED, str(order.result)
        except SkillError as error:
            order.text = f"{type(error).__name__}: {error}"
        order.over = clock.monotonic()

    async def _cancel(self, is_mission: bool, rng: random.Random) -> None:
        order = Order("cancel", clock.monotonic())
        self.orders.append(order)
        try:
            views = await self._link.calls(open_only=True)
            if chosen := [view for view in views if (view.skill == "say") is is_mission]:
                order.call_id = rng.choice(chosen).call_id
                await self._link.cancel(order.call_id, "an operator")
        except SkillError as error:
            order.text = f"{type(error).__name__}: {error}"
        order.over = clock.monotonic()
