"""The page about the protocol of robots and hub has each message's fields, an example of each, and the constants."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.fleet import protocol
from dimos_streams.fleet.batches import Batch, Position, ShippedEvent, ShippedGap
from dimos_streams.fleet.commands import Answer, Command, Hello
from dimos_streams.fleet.protocol import FleetMessage
from dimos_streams.fleet.reports import Reported, RobotReport
from dimos_streams.hub.batches import robot_batch

TEXT = (Path(__file__).parents[2] / "docs" / "fleet-protocol.md").read_text()
MESSAGES = (Batch, ShippedEvent, ShippedGap, Position, RobotReport, Reported, Hello, Command, Answer)


def rows(model: type[FleetMessage]) -> list[str]:
    """The first three cells of each field's row in the page: its name, its type, and what stands for it."""
    schema = model.model_json_schema()
    required = schema.get("required", [])
    without = {
        name: "—" if name in required else f"`{json.dumps(field.get('default', {}))}`"
        for name, field in schema["properties"].items()
    }
    return [f"| `{name}` | {_kind(field)} | {without[name]} |" for name, field in schema["properties"].items()]


def _kind(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(map(_kind, field["anyOf"]))
    if "$ref" in field or "oneOf" in field:
        return "object"
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    name = str(field.get("type", "any JSON"))
    if name == "array":
        name = f"array of ({_kind(field['items'])})"
    bounds = {
        "minimum": "from {}",
        "maximum": "to {}",
        "minLength": "{} characters at least",
        "maxLength": "{} at most",
        "minItems": "{} at least",
        "maxItems": "{} at most",
        "pattern": "`{}`",
    }
    return ", ".join([name, *(text.format(field[key]) for key, text in bounds.items() if key in field)])


@pytest.mark.parametrize("model", MESSAGES, ids=lambda model: model.__name__)
def test_each_message_has_its_fields_and_an_example(model: type[FleetMessage]) -> None:
    _, found, section = TEXT.partition(f"\n### {model.__name__}\n")
    assert found, f"docs/fleet-protocol.md has no section ### {model.__name__}"
    section = re.split(r"\n##+ ", section)[0]
    documented = ["|".join(line.split("|")[:4]) + "|" for line in section.splitlines() if line.startswith("| `")]
    assert documented == rows(model)
    example = re.search(r"```json\n(.*?)```", section, re.DOTALL)
    assert example is not None
    message = model.model_validate_json(example[1])
    if isinstance(message, Batch):
        assert len(robot_batch("robot1", message).entries) == 2, "an event and a gap"


def test_the_constants_that_it_names_have_their_values() -> None:
    documented = dict(re.findall(r"^\| `([A-Z_]+)` \| ([^|]+) \|", TEXT, re.MULTILINE))
    named = set(re.findall(r"`([A-Z]+_[A-Z_]+)`", TEXT)) & set(vars(protocol))
    assert named <= documented.keys()
    for name, value in documented.items():
        assert str(getattr(protocol, name)) == value.strip("`"), name
