"""``POST /robots/stop``, ``/robots/release`` and ``/calls/cancel``, and ``GET /robots``: operators' orders to robots.

These speak for operators, as all of HTTP but ``/mcp`` does.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI
from pydantic import ConfigDict, Field, model_validator

from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bridge.calls.state.call_state import CANCEL_OVERDUE_S
from dimos_streams.bridge.calls.stops.cancels import Cancels
from dimos_streams.operator.messages.message import Name
from dimos_streams.operator.messages.stop import CancelReport, ReleaseOrder, ReleaseReport, RobotOrder, StopReport
from dimos_streams.serving import problem_kinds
from dimos_streams.serving.openapi import refusals
from dimos_streams.tool_stream.gateway import MAX_ENDED_AT_ONCE

_REFUSALS = refusals(problem_kinds.UNKNOWN_ROBOT, problem_kinds.BAD_REQUEST, takes_body=True)


class CancelOrder(RobotOrder):
    """Body of ``POST /calls/cancel``; it may be left out."""

    model_config = ConfigDict(defer_build=False)

    calls: Annotated[tuple[Name, ...], Field(max_length=MAX_ENDED_AT_ONCE)] | None = None
    """The calls that are to end, by their ids. Without them all of the robot's are, and none that waits begins."""
    wait_s: Annotated[float, Field(ge=0.0, le=CANCEL_OVERDUE_S)] = CANCEL_OVERDUE_S
    """The longest time to wait for their ends, in seconds."""

    @model_validator(mode="after")
    def _names_one(self) -> CancelOrder:
        if self.robot and self.calls is not None:
            raise ValueError("valid: calls or a robot, not both")
        return self


def mount_robots(app: FastAPI, broker: Broker) -> None:
    """Add the routes to an app."""
    stops = broker.stops

    @app.get("/robots", responses=refusals())
    async def robots() -> dict[str, Any]:
        stopped = stops.stopped().model_dump(mode="json")
        return {"robots": sorted(stops.robots()), "stopped": stopped, "orders": dict(stops.orders)}

    @app.post("/robots/stop", responses=_REFUSALS)
    async def stop_robots(body: RobotOrder | None = None) -> dict[str, Any]:
        order = body or RobotOrder()
        report = await stops.stop_robot(order.robot, order.reason)
        return _answer(report)

    @app.post("/robots/release", responses=_REFUSALS | refusals(problem_kinds.CONFLICT))
    async def release_robots(body: ReleaseOrder | None = None) -> dict[str, Any]:
        order = body or ReleaseOrder()
        report = await stops.release(order.robot, order.seen)
        return _answer(report)

    @app.post("/calls/cancel", responses=_REFUSALS)
    async def cancel_calls(body: CancelOrder | None = None) -> dict[str, Any]:
        order = body or CancelOrder()
        report = await _cancel(broker.cancels, order)
        return _answer(report)


def _answer(report: StopReport | ReleaseReport | CancelReport) -> dict[str, Any]:
    return {**report.model_dump(mode="json"), "confirmed": report.confirmed, "text": str(report)}


async def _cancel(cancels: Cancels, order: CancelOrder) -> CancelReport:
    if order.calls is None:
        return await cancels.cancel_all(order.robot, order.reason, within_s=order.wait_s)
    return await cancels.cancel(order.calls, order.reason, within_s=order.wait_s)
