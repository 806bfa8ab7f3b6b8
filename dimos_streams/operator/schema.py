"""The JSON Schema of ``WS /monitor``: ``python -m dimos_streams.operator.schema`` prints it."""

from __future__ import annotations

import json
import sys
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import models_json_schema

from dimos_streams.operator.messages.agent import AgentEvent, AgentSnapshot
from dimos_streams.operator.messages.commands import Command
from dimos_streams.operator.messages.run import MonitorSnapshot
from dimos_streams.operator.messages.server import ServerMessage

SERVER_MESSAGES: TypeAdapter[ServerMessage] = TypeAdapter(ServerMessage)
COMMANDS: TypeAdapter[Command] = TypeAdapter(Command)


@cache
def schema() -> dict[str, Any]:
    """One document; ``$defs`` has ``ServerMessage`` (what the bridge sends) and ``Command`` (what clients send).

    It is made once, in 20 ms, and is the same object for everybody who asks: leave it as it is.
    """
    defs: dict[str, Any] = {}
    for name, adapter in (("ServerMessage", SERVER_MESSAGES), ("Command", COMMANDS)):
        part = adapter.json_schema(ref_template="#/$defs/{model}", mode="validation")
        defs |= part.pop("$defs")
        defs[name] = part
    _, models = models_json_schema(
        [(model, "validation") for model in (AgentEvent, AgentSnapshot, MonitorSnapshot)],
        ref_template="#/$defs/{model}",
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "WS /monitor",
        "description": "The bridge sends ServerMessage objects, one a text frame; clients send Command objects.",
        "$defs": dict(sorted((defs | models["$defs"]).items())),
    }


def schema_text() -> str:
    """The schema as the file in ``docs`` has it."""
    return json.dumps(schema(), indent=2, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
