"""Viewers' orders: their requests and answers, and the way to the bridge, which is that of every operator."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, TypeAdapter

from dimos_streams.client.http_gateway import HttpGateway
from dimos_streams.common.schemas.json_model import JsonModel
from dimos_streams.errors import SkillError
from dimos_streams.foxglove.door.arrivals import HasLeft, stays
from dimos_streams.foxglove.order_line import OrderLine, stops
from dimos_streams.operator.approval_reference import ApprovalReference
from dimos_streams.operator.messages.agent import ApprovalView
from dimos_streams.operator.messages.message import OptionalName, Text
from dimos_streams.operator.order_results import has_come_true
from dimos_streams.tool_stream.gateway import CallView

_WAIT_S = 10.0
_APPROVALS = TypeAdapter(list[ApprovalView])


class OrderRequest(JsonModel):
    """A request of a viewer."""

    @property
    def target(self) -> str:
        """The robot or the agent that it is for, empty if it names none."""
        return ""


class AgentRequest(OrderRequest):
    """A request to an agent."""

    agent: OptionalName = ""
    """Its module's name, or its namespace; may be left out where there is only one."""
    reason: Text = ""

    @property
    def target(self) -> str:
        """See ``OrderRequest``."""
        return self.agent


class ReleaseRequest(OrderRequest):
    """A request about a robot that was stopped."""

    robot: OptionalName = ""
    """Its namespace, empty for every robot."""

    @property
    def target(self) -> str:
        """See ``OrderRequest``."""
        return self.robot


class RobotRequest(ReleaseRequest):
    """A request about a robot."""

    reason: Text = ""


class DecisionRequest(OrderRequest):
    """A decision on a call that waits for an operator."""

    approval: OptionalName = ""
    """Its id, or its id and the revision that was seen, ``ID@1``; may be left out where one call waits."""
    agent: OptionalName = ""
    """The agent whose call it is; may be left out where there is one agent."""
    reason: Text = ""


class OrderAnswer(BaseModel):
    """The answer to an order that was not refused."""

    done: bool
    """False where a robot may move on that was to stand, and where the order is not kept: ``text`` says why."""
    text: str


@dataclass(frozen=True, slots=True)
class ViewerOrder:
    """An order that viewers may give."""

    name: str
    request: type[OrderRequest]
    give: Callable[[Operator, Any], Awaitable[OrderAnswer]]


class Operator:
    """Gives viewers' orders to a bridge, in a name of its own. Raises ``DimosStreamsError`` for what is refused."""

    def __init__(self, gateway: HttpGateway, caller: str, outdated_s: Callable[[], float] = lambda: 0.0) -> None:
        """``caller`` is who asks, as the journal has it; ``outdated_s`` returns the time, in seconds, until all has
        been read that came while this process stood still for so long that viewers may have given up and left."""
        self._gateway = gateway
        self._caller = caller
        self._outdated_s = outdated_s
        self._line = OrderLine()

    async def carry_out(
        self, order: ViewerOrder, request: OrderRequest, viewer: int, has_left: HasLeft = stays
    ) -> OrderAnswer:
        """Carry out an order of a ``viewer`` when its turn has come, and return its answer. Raises ``SkillError`` for
        one whose turn does not come: a viewer who asks without end keeps nobody from stopping a robot; and for one
        whose viewer left while this process stood still, unless it stops: it would come when nobody expects it any
        more."""
        is_outdated = self._outdated_s() > 0 and not stops(order.name)
        async with self._line.place(viewer, order.name, request.target):
            if is_outdated:
                await asyncio.sleep(self._outdated_s())
                self._line.check_overtaken()
                if has_left():
                    raise SkillError(f"{order.name} is not carried out: its viewer left meanwhile")
            return await order.give(self, request)

    async def close(self) -> None:
        """Give no more orders; those that wait for their answer have failed then. Twice is fine."""
        self._gateway.close()
        await self._line.ended()

    async def pause(self, request: AgentRequest) -> OrderAnswer:
        """Have an agent begin nothing new, and hold its robot still."""
        return await self._order("pause", {"reason": request.reason}, request.agent)

    async def resume(self, request: AgentRequest) -> OrderAnswer:
        """Have a paused agent go on."""
        return await self._order("resume", {"reason": request.reason}, request.agent)

    async def stop(self, request: RobotRequest) -> OrderAnswer:
        """Have a robot stand still until it is released, whatever its agent does."""
        reason = f"{request.reason} (by {self._caller})".strip()
        report = await self._gateway.order("/robots/stop", request.robot, reason)
        return OrderAnswer(done=report.done, text=report.text)

    async def release(self, request: ReleaseRequest) -> OrderAnswer:
        """Let a robot that was stopped move again, from the stops that there are when it is asked for."""
        seen = await self._gateway.stops()
        self._line.check_overtaken()  # what was seen may be a stop that came meanwhile
        report = await self._gateway.order("/robots/release", request.robot, seen=seen)
        return OrderAnswer(done=report.done, text=report.text)

    async def approve(self, request: DecisionRequest) -> OrderAnswer:
        """Let a call begin that waits for an operator."""
        return await self._decide("approve", request)

    async def reject(self, request: DecisionRequest) -> OrderAnswer:
        """Refuse a call that waits for an operator; the model gets the reason."""
        return await self._decide("reject", request)

    async def _decide(self, decision: str, request: DecisionRequest) -> OrderAnswer:
        meant = await self._meant(request)
        arguments = {"approval": meant.id, "decision": decision, "reason": request.reason, "revision": meant.revision}
        return await self._order("decide", arguments, request.agent)

    async def _meant(self, request: DecisionRequest) -> ApprovalReference:
        """Return the approval at the revision that the viewer names, or else at the one that it has now."""
        named = ApprovalReference.of(request.approval) if request.approval else ApprovalReference("")
        if named.revision is not None:
            return named
        asked = await self._ask("approvals", {"approval": named.id}, request.agent)
        listed = _APPROVALS.validate_python(asked.result or [])
        if len(listed) == 1:
            return ApprovalReference(listed[0].id, listed[0].revision)
        if named.id:
            return named  # the agent says what is wrong with it
        waiting = "; ".join(f"{each.reference}: {each.skill}({_short(each.arguments)})" for each in listed)
        raise SkillError(f"say which `approval` is meant: {waiting}" if listed else "no call waits for approval")

    async def _order(self, name: str, arguments: dict[str, Any], agent: str) -> OrderAnswer:
        """Have an agent carry out an order. Raises ``SkillError`` if it was not done."""
        view = await self._ask(name, arguments, agent)
        return OrderAnswer(done=has_come_true(name, view.result), text=view.text)

    async def _ask(self, skill: str, arguments: dict[str, Any], agent: str) -> CallView:
        """Call an operator's skill of an agent, to its end. Raises ``SkillError`` if it was not done."""
        view = await self._gateway.call_to_close(skill, arguments, caller=self._caller, agent=agent, wait_s=_WAIT_S)
        if view.outcome is None:
            raise SkillError(
                f"agent {view.module!r} has not answered within {_WAIT_S:g} s; call {view.call_id} goes on"
            )
        if view.outcome != "completed":
            raise SkillError(f"agent {view.module!r}: {view.text}")
        return view


def _short(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={str(value)[:40]}" for name, value in arguments.items())


ORDERS = (
    ViewerOrder("/pause", AgentRequest, Operator.pause),
    ViewerOrder("/resume", AgentRequest, Operator.resume),
    ViewerOrder("/stop", RobotRequest, Operator.stop),
    ViewerOrder("/release", ReleaseRequest, Operator.release),
    ViewerOrder("/approve", DecisionRequest, Operator.approve),
    ViewerOrder("/reject", DecisionRequest, Operator.reject),
)
