"""The result of an operator's input: what became of the mission that it led to."""

from __future__ import annotations

from typing import Any

from pydantic import SerializerFunctionWrapHandler, model_serializer

from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.errors import SkillError


class Said(FrozenModel):
    """The end of a mission."""

    text: str
    """The model's last text; if it is too long for an event, its beginning, and how much is missing."""
    reason: str
    """The reason its last turn ended: ``completed``, ``max_iterations``, ``error``, …"""
    unfinished: tuple[str, ...] = ()
    """Calls of it that did not end when they were cancelled and may still run, each with what holds the robot. The
    JSON does not have it if there are none."""

    @model_serializer(mode="wrap")
    def _without_nothing(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = serialize(self)
        if not self.unfinished:
            del fields["unfinished"]
        return fields

    def __str__(self) -> str:
        return "\n".join((self.text or self.reason, *self.unfinished))


class MissionIncompleteError(SkillError):
    """Raised when a mission ended before it was done. ``result`` is what was ``Said``."""
