"""Damaged calls in the real loop: what reaches the bus, and what the model is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dimos_streams.bus import Bus
from dimos_streams.messages.codec import decode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.tool_stream.protocol.channels import CALLS
from tests.agent.stage import script, stage


def calls_on(bus: Bus) -> list[str]:
    """The skills that are asked for on the bus from now on."""
    asked: list[str] = []

    def take(channel: str, data: bytes) -> None:
        name = decode(SkillCall, data, channel=channel).skill
        if name not in ("say", "report"):
            asked.append(name)

    bus.subscribe(CALLS, take)
    return asked


def sending(name: str, arguments: str, **turn: Any) -> dict[str, Any]:
    return {"deltas": [{"index": 0, "id": "a", "name": name, "arguments": arguments}], **turn}


TRUNCATED = '{"distance_m": 1, "note": "' + "x" * 300


@pytest.mark.feature("B2")
@pytest.mark.virtual_time
async def test_damaged_calls_reach_nobody_and_are_answered(tmp_path: Path) -> None:
    damaged = {
        f"Received (200 of {len(TRUNCATED)} characters): {TRUNCATED[:200]}": sending("move", TRUNCATED),
        "'move' was not run: its arguments are malformed": sending("move", "{distance_m: 1}"),
        "an object has several members of the name 'distance_m'": sending(
            "move", '{"distance_m": 1, "distance_m": 9}'
        ),
        "truncated (the answer was cut off": sending("move", '{"distance_m": 1}', finish=None),
        "cut off before it was finished": sending("move", '{"distance_m": 1}', finish="content_filter"),
        "'stop_following' was not run: its arguments are truncated": sending("stop_following", "", finish="length"),
    }
    turns = [turn for words, call in damaged.items() for turn in (call, {"text": "I see.", "expect": words})]

    async with stage(script(tmp_path / "s.json", *turns)) as s:
        asked = calls_on(s.harness.bus)
        for _ in damaged:
            result = await (await s.say("move")).result()
            assert (result["text"], result["reason"]) == ("I see.", "completed")
        assert [entry.is_error for entry in s.entries("tool")] == [True] * len(damaged)
        assert asked == []
        assert s.skills.moves == []
        assert not [event for event in s.harness.events() if event.skill in ("move", "stop_following")]


@pytest.mark.feature("B2")
@pytest.mark.virtual_time
async def test_no_arguments_are_none_where_the_skill_allows_it(tmp_path: Path) -> None:
    turns = (
        sending("stop_following", ""),
        sending("move", "", expect="stopped following"),
        {"text": "Done.", "expect": "distance_m"},
    )

    async with stage(script(tmp_path / "s.json", *turns)) as s:
        asked = calls_on(s.harness.bus)
        result = await (await s.say("stop following")).result()
        assert result["text"] == "Done."
        assert [entry.is_error for entry in s.entries("tool")] == [False, True]
        assert asked == ["stop_following"]
