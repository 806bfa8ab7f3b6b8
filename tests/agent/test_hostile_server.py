"""Servers that poison an agent, over real HTTP and through its death: every later request is sound, and answered."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.agent.module import Agent
from dimos_streams.bridge.module import Bridge
from dimos_streams.module import RunContext
from dimos_streams.testing import ModelServer, ModuleHarness, RecordedRequest, Reply
from tests.agent.stage import Stage, ToySkills

MOVE = ("move", {"distance_m": 1})


@contextlib.asynccontextmanager
async def lived(run_dir: Path, server: ModelServer, **config: Any) -> AsyncIterator[Stage]:
    """One life of an agent that records; ``async with`` it again for the next."""
    context = RunContext(run_dir=run_dir)
    bridge = Bridge({"http": False}, name="bridge", context=context)
    options = {"first_wait_s": 0.01, "silence_s": 5, **config.pop("model_options", {})}
    settings = {"model": "openai:m", "base_url": server.url, "model_options": options, **config}
    async with ModuleHarness(bridge) as harness:
        harness._numbers = itertools.count(1 + len(server.requests))  # missions have ids of their own
        skills = ToySkills(name="skills", context=context)
        await harness.add(skills)
        agent = Agent(settings, name="agent", context=context)
        await harness.add(agent)
        yield Stage(harness, bridge, agent, skills)


async def said(s: Stage, input: str) -> dict[str, Any]:
    closed = await (await s.say(input)).closed()
    result: dict[str, Any] = closed.data["result"]
    return result


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


EMOJI = Reply.raw(chunk({"content": "Hello \ud83d"}), chunk({"content": "\ude00 \ud83d"}), chunk({}, "stop"))
POISON: dict[str, tuple[Reply, str]] = {
    "half an emoji": (EMOJI, "completed"),
    "half an emoji in arguments": (Reply.calls(("note_down", '{"text": "\\ud83d"}')), "completed"),
    "no key": (Reply.error(401, "no such key \ud83d"), "error"),
    "NaN": (Reply.calls(("move", '{"distance_m": NaN}')), "completed"),
    "infinity": (Reply.calls(("move", '{"distance_m": 1e999}')), "completed"),
    "a name that is none": (Reply.calls(("mo ve\ud83d" * 30, "{}")), "completed"),
    "no answer": (Reply.raw(chunk({}, "stop")), "no_answer"),
    "calls that never came": (Reply.raw(chunk({}, "tool_calls")), "no_calls"),
    "babble": (Reply.say("bla " * 200_000, piece=4000), "too_long"),
    "too much at once": (Reply(body="[" * (2**20 + 1)), "error"),
    "JSON that is nested deeply": (Reply.raw("[" * 20_000), "completed"),
    "a packed answer": (Reply(body="{}", headers={"content-encoding": "gzip"}), "error"),
    "a redirection": (Reply(status=307, headers={"location": "http://127.0.0.2/"}, body=""), "error"),
    "a filter": (Reply.raw(chunk({"content": "I"}), chunk({}, "content_filter")), "content_filter"),
    "the same id again": (
        Reply.raw(
            *(chunk({"tool_calls": [{"id": "x", "function": {"name": n, "arguments": "{}"}}]}) for n in ("a", "b")),
            chunk({}, "tool_calls"),
        ),
        "completed",
    ),
}


@pytest.mark.slow
@pytest.mark.feature("D7", "B2", "E9")
@pytest.mark.parametrize("poison", POISON)
def test_what_a_server_says_poisons_no_later_request(poison: str, tmp_path: Path) -> None:
    bad, reason = POISON[poison]

    async def main() -> None:
        async with ModelServer([bad, Reply.say("Sound.")]) as server:
            async with lived(tmp_path, server) as s:
                assert (await said(s, "drive forward 3 metres"))["reason"] == reason
                if len(server.requests) == 1:
                    assert (await said(s, "what do you see?"))["text"] == "Sound."
            server.add(Reply.say("Again."))
            async with lived(tmp_path, server) as s:
                assert (await said(s, "and now?"))["text"] == "Again."
            newest = server.requests[-1]
            assert len(newest.raw) < 100_000
            assert str(newest.body["messages"]).count("drive forward 3 metres") == 1

    asyncio.run(main())


@pytest.mark.slow
@pytest.mark.feature("D7", "B5", "B6", "B10")
def test_requests_are_sound_through_all_that_happens_to_missions(tmp_path: Path) -> None:
    """Abort, rejection, undo, restart, pictures and a context that is too short, with a server that is strict."""
    longest = 5000

    def answer(request: RecordedRequest) -> Reply:
        if len(request.raw) > longest + len(str(request.body.get("tools"))):
            return Reply.error(400, "maximum context length is 5000", code="context_length_exceeded")
        input = str(request.body["messages"][-1]["content"])
        if request.body["messages"][-1]["role"] == "tool":
            return Reply.say("Done. " + "x" * 300)
        if "follow" in input and "<operator>" in input:
            return Reply.calls(("follow_person", {"description": "a man"}), ("move", {"distance_m": 1}))
        return Reply.calls(MOVE) if "move" in input else Reply.say("Yes. " + "x" * 300)

    async def main() -> None:
        approval = {"rules": [{"skill": "move"}]}
        async with ModelServer(answer) as server:
            for life in range(2):
                async with lived(tmp_path, server, approval=approval) as s:
                    core = s.agent.core
                    following = await s.say(f"follow him {life}")
                    await s.until("tool", "goes on")
                    pending = await _pending(s)
                    core.gate_state.approvals.decide(pending, "reject", None, "not there")
                    await s.until("assistant", "Done")
                    await core.loop.abort("enough")
                    await following.closed()
                    moving = await s.say("move")
                    core.gate_state.approvals.decide(await _pending(s), "approve", None, "")
                    await moving.closed()
                    await core.loop.undo()
                    for number in range(4):
                        await said(s, f"talk {number}" + "y" * 300)
                    assert len(core.conversation.messages()) < 40
            refused = [request for request in server.requests if len(request.raw) > longest * 3]
            assert not refused
            assert any(entry for entry in s.entries("note") if "too long for the model" in entry.text)

    asyncio.run(main())


async def _pending(s: Stage) -> str:
    async with asyncio.timeout(20):
        while not (pending := s.agent.core.gate_state.approvals.pending()):
            await s.agent.conversation.changed.wait()
    return pending[0].id
