"""The inputs of gates in tests: an offered skill, a model's call, and the log that they write to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dimos_streams.agent.policies.gates.base import CallRequest
from dimos_streams.agent.policies.plans import CheckedStep
from dimos_streams.tool_stream.gateway import OfferedSkill


def offered(name: str = "move", *, parameters: Mapping[str, Any] | None = None, **policy: Any) -> OfferedSkill:
    """A skill as a bridge lists it; any arguments fit unless ``parameters`` says otherwise."""
    schema = {"type": "object", "properties": {}} if parameters is None else dict(parameters)
    return OfferedSkill(name=name, description="", parameters=schema, module="m", available=True, **policy)


def step(skill: str, arguments: Mapping[str, Any]) -> CheckedStep:
    """A step of a plan, as if it were a call of a skill that is ``offered``."""
    return CheckedStep("m", skill, arguments)


def request(skill: OfferedSkill, missions: tuple[str, ...] = ("m1",), **arguments: Any) -> CallRequest:
    """A model's call."""
    return CallRequest(skill=skill, arguments=arguments, missions=missions)


class Events:
    """An event log that calls its listeners at once."""

    def __init__(self) -> None:
        self.all: list[tuple[str, dict[str, Any]]] = []

    def emit(self, kind: str, missions: Sequence[str] = (), *phase: Any, **data: Any) -> None:
        """See ``Emit``."""
        self.all.append((kind, data))

    def kinds(self) -> list[str]:
        """The kinds so far."""
        return [kind for kind, _ in self.all]
