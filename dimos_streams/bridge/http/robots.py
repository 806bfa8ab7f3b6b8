"""``POST /robots/stop``, ``/robots/release`` and ``/calls/cancel``, and ``GET /robots``: operators' orders to robots.

These speak for operators, as all of HTTP but ``/mcp`` does.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.operator.messages.stop import ReleaseOrder, RobotOrder
from dimos_streams.serving import problem_kinds
from dimos_streams.serving.openapi import refusals

_REFUSALS = refusals(problem_kinds.UNKNOWN_ROBOT, problem_kinds.BAD_REQUEST, takes_body=True)


def mount_robots(app: FastAPI, broker: Broker) -> None:
    """Add the routes to an app."""
    stops = broker.stops

    @app.get("/robots", responses=refusals())
    async def robots() -> dict[str, Any]:
        return {"robots": sorted(stops.robots()), "stopped": stops.stopped().model_dump(mode="json")}

    @app.post("/robots/stop", responses=_REFUSALS)
    async def stop(body: RobotOrder | None = None) -> dict[str, Any]:
        order = body or RobotOrder()
        report = await stops.stop_robot(order.robot, order.reason)
        return {**report.model_dump(mode="json"), "confirmed": report.confirmed, "text": str(report)}

    @app.post("/robots/release", responses=_REFUSALS | refusals(problem_kinds.CONFLICT))
    async def release(body: ReleaseOrder | None = None) -> dict[str, Any]:
        order = body or ReleaseOrder()
        report = await stops.release(order.robot, order.seen)
        return {**report.model_dump(mode="json"), "confirmed": report.confirmed, "text": str(report)}

    @app.post("/calls/cancel", responses=_REFUSALS)
    async def cancel_all(body: RobotOrder | None = None) -> dict[str, Any]:
        order = body or RobotOrder()
        report = await stops.cancel_all(order.robot, order.reason)
        return {**report.model_dump(mode="json"), "confirmed": report.confirmed, "text": str(report)}
