"""``POST /settings``: an operator changes live settings of modules."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.operator.messages.settings import SettingsOrder
from dimos_streams.serving import problem_kinds
from dimos_streams.serving.openapi import refusals

_REFUSALS = refusals(
    problem_kinds.BAD_SETTINGS,
    problem_kinds.BAD_REQUEST,
    problem_kinds.CALL_REJECTED,
    problem_kinds.SKILL_ERROR,
    problem_kinds.SKILL_UNAVAILABLE,
    takes_body=True,
)


def mount_settings(app: FastAPI, broker: Broker) -> None:
    """Add the route to an app."""

    @app.post("/settings", responses=_REFUSALS)
    async def change_settings(body: SettingsOrder) -> dict[str, Any]:
        report = await broker.settings.change(body.assignments, body.caller)
        return {**report.model_dump(mode="json"), "text": str(report)}
