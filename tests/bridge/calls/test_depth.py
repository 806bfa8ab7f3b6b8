"""Nested data: what a call takes and says can be read wherever it is handed on, or is refused where it is made."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest

from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.common.json.depth import is_deeper
from dimos_streams.common.json.reading import parse_json
from dimos_streams.errors import MessageError, SkillArgumentError, SkillError
from dimos_streams.fleet.batches import Batch, encoded_batch, encoded_event
from dimos_streams.module import Module
from dimos_streams.skill import Call, skill
from dimos_streams.tool_stream.protocol.bounds import MAX_ARGUMENTS_DEPTH, MAX_DATA_DEPTH
from dimos_streams.tool_stream.protocol.channels import CALLS
from dimos_streams.tool_stream.protocol.json_fields import arguments_object, json_object
from tests.bridge.scene import Scene, closed, scene


def nested(depth: int) -> Any:
    return json.loads("[" * depth + "]" * depth)


class Digger(Module):
    """Says and takes what is nested."""

    @skill
    async def say(self, call: Call, depth: int) -> None:
        """Say it."""
        await call.update("here", hole=nested(depth))

    @skill
    async def give(self, depth: int) -> Any:
        """Return it."""
        return nested(depth)

    @skill
    async def fail(self, depth: int) -> None:
        """Fail with it."""
        raise SkillError("the ground is hard", result=nested(depth))

    @skill
    async def take(self, hole: Any) -> str:
        """Take it."""
        return "taken"


async def bodies(world: Scene, call_id: str) -> list[bytes]:
    with contextlib.closing(world.broker.ledger.broadcast.reader(after=0, call_id=call_id)) as reader:
        return [entry.body for entry in await reader.page()]


@pytest.mark.virtual_time
async def test_what_is_as_deep_as_may_be_is_read_by_all() -> None:
    async with scene(worker=False) as world:
        await world.add(Digger(name="digger"))
        await world.offered("take")
        deepest = {"say": MAX_DATA_DEPTH - 1, "give": MAX_DATA_DEPTH - 1, "fail": MAX_DATA_DEPTH - 1}
        asked: list[tuple[str, dict[str, Any]]] = [(name, {"depth": depth}) for name, depth in deepest.items()]
        asked.append(("take", {"hole": nested(MAX_ARGUMENTS_DEPTH - 1)}))
        for name, arguments in asked:
            call_id = await world.broker.call(name, arguments, caller="me")
            view = await closed(world.broker, call_id)
            assert (name, view.outcome) == (name, "failed" if name == "fail" else "completed")
            events = await bodies(world, call_id)
            assert [parse_json(body)["type"] for body in events][-1] == "close"
            shipped = [encoded_event(number, body) for number, body in enumerate(events, 1)]
            Batch.model_validate(parse_json(encoded_batch("journal-1", "1", 1, shipped)))
            row = world.broker.ledger.journal.call(call_id)
            assert row is not None
            assert CallState.from_row(row).view() == view


@pytest.mark.virtual_time
async def test_what_is_deeper_is_refused_where_it_is_made() -> None:
    async with scene(worker=False) as world:
        await world.add(Digger(name="digger"))
        await world.offered("take")
        said = {}
        for name, depth in (
            ("say", MAX_DATA_DEPTH),
            ("give", MAX_DATA_DEPTH),
            ("give", 201),
            ("fail", MAX_DATA_DEPTH),
        ):
            call_id = await world.broker.call(name, {"depth": depth}, caller="me")
            view = await closed(world.broker, call_id)
            said[name, depth] = (str(view.outcome), view.text)
        assert said == {
            ("say", MAX_DATA_DEPTH): ("failed", f"the data of an update is nested more than {MAX_DATA_DEPTH} deep"),
            ("give", MAX_DATA_DEPTH): (
                "failed",
                f"the result is nested more than {MAX_DATA_DEPTH - 1} deep; give a reference instead",
            ),
            ("give", 201): (
                "failed",
                f"the result is nested more than {MAX_DATA_DEPTH - 1} deep; give a reference instead",
            ),
            ("fail", MAX_DATA_DEPTH): ("failed", "the ground is hard"),
        }
        for depth in (MAX_ARGUMENTS_DEPTH, 199):
            with pytest.raises(SkillArgumentError, match=f"nested more than {MAX_ARGUMENTS_DEPTH} deep"):
                await world.broker.call("take", {"hole": nested(depth)}, caller="me")


def test_levels_are_counted_and_not_brackets() -> None:
    for depth in (1, 2, 64, 100, 199):
        text = json.dumps(nested(depth))
        assert not is_deeper(text, depth)
        assert is_deeper(text, depth - 1)
        assert is_deeper(text.encode(), depth - 1)
    assert not is_deeper(json.dumps({"wide": [[{}] * 50] * 50, "text": "[{" * 500}), 4)
    assert is_deeper("[" * 300 + "]" * 300, 100)


def test_what_readers_repair_is_not_too_deep() -> None:
    wide = ",[]" * MAX_DATA_DEPTH
    assert json_object('{"a":["\\ud800"' + wide + "]}", CALLS, "x")["a"][0] == "\ufffd"
    assert not is_deeper('["\ud800"' + wide + "]", MAX_DATA_DEPTH)


def test_what_comes_deeper_from_the_bus_is_no_message() -> None:
    for read, most in ((json_object, MAX_DATA_DEPTH), (arguments_object, MAX_ARGUMENTS_DEPTH)):
        assert read(json.dumps({"a": nested(most - 1)}), CALLS, "x")
        with pytest.raises(MessageError, match=f"JSON nested more than {most} deep"):
            read(json.dumps({"a": nested(most)}), CALLS, "x")
