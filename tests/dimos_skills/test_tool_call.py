"""How a tool of dimos is asked to end, in virtual time, against a server that takes its time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import pytest

from dimos_streams import clock
from dimos_streams.dimos_skills.answers import ToolAnswer, ToolResult
from dimos_streams.dimos_skills.config import DimosSkillsConfig
from dimos_streams.dimos_skills.server import ToolServer
from dimos_streams.dimos_skills.streams import DimosToolStream, ToolStreams
from dimos_streams.dimos_skills.tool_call import DimosToolCall
from dimos_streams.dimos_skills.tools import Tool
from dimos_streams.skill import Call
from tests.helpers import run_virtual

_OK = {"content": [{"type": "text", "text": "ok"}]}
_Answer = Callable[[], Awaitable[None]]


class _Server:
    url = "http://127.0.0.1:9/mcp"

    def __init__(self, answers: Mapping[str, _Answer]) -> None:
        self.answers = answers
        self.asked: list[tuple[float, str]] = []

    async def request(self, method: str, params: Mapping[str, Any], *, within_s: float) -> dict[str, Any]:
        self.asked.append((round(clock.monotonic(), 1), params["name"]))
        await self.answers[params["name"]]()
        return _OK


class _Call:
    id = "c"

    def __init__(self) -> None:
        self.said: list[str] = []

    async def update(self, text: str, **numbers: float) -> None:
        self.said.append(text)


async def _finished(answer: ToolAnswer) -> ToolResult:
    return ToolResult(answer.text, None, ())


def _drive(stream: DimosToolStream, server: _Server, call: _Call, *, streams: bool = True) -> DimosToolCall:
    tool = Tool("drive", moves=True, streams=streams, stop="stop_drive", ends=False)
    made, asked = cast("Call", call), cast("ToolServer", server)
    return DimosToolCall(
        tool, made, {}, "token", stream, asked, DimosSkillsConfig.model_validate({}), lambda: "", _finished
    )


@pytest.mark.feature("G3")
@pytest.mark.parametrize("streams", [True, False])
def test_a_stop_that_overtook_its_start_is_repeated_once_the_tool_has_answered(streams: bool) -> None:
    async def scenario() -> None:
        opened, driving, call = ToolStreams(), False, _Call()

        async def drive() -> None:
            nonlocal driving
            await asyncio.sleep(1.0)  # to load a model, say
            driving = True

        async def stop_drive() -> None:
            nonlocal driving
            if driving or not streams:
                stream.stop()
            driving = False

        with opened.open("token", "drive") as stream:
            server = _Server({"drive": drive, "stop_drive": stop_drive})
            began = clock.monotonic()
            running = asyncio.create_task(_drive(stream, server, call, streams=streams).run())
            await asyncio.sleep(0.3)
            running.cancel()
            await asyncio.wait([running], timeout=60.0)
            assert running.cancelled()
            assert not driving
            times = [(round(when - began, 1), name) for when, name in server.asked]
            assert times == [(0.0, "drive"), (0.3, "stop_drive"), (1.0, "stop_drive")]
            assert call.said == ["[stop_drive: ok]"]

    run_virtual(scenario())


@pytest.mark.feature("G3")
def test_a_tool_that_does_not_end_is_asked_again_at_a_steady_pace() -> None:
    async def scenario() -> None:
        opened, call = ToolStreams(), _Call()

        async def at_once() -> None:
            pass

        with opened.open("token", "drive") as stream:
            server = _Server({"drive": at_once, "stop_drive": at_once})
            running = asyncio.create_task(_drive(stream, server, call).run())
            await asyncio.sleep(1.0)
            running.cancel()
            await asyncio.sleep(20.0)
            assert not running.done()
            assert 8 <= sum(name == "stop_drive" for _, name in server.asked) <= 11
            stream.stop()
            await asyncio.wait([running], timeout=5.0)
            assert running.cancelled()
            assert call.said.count("[stop_drive: ok]") == 1

    run_virtual(scenario())
