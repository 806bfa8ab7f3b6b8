"""One call of a tool of dimos, from the request to the message that says that the tool has stopped."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from dimos_streams import clock
from dimos_streams.common.readable.json_cut import cut_to
from dimos_streams.common.tasks import end_tasks
from dimos_streams.dimos_skills.answers import ToolAnswer, ToolResult, parsed_answer
from dimos_streams.dimos_skills.config import DimosSkillsConfig
from dimos_streams.dimos_skills.notices import ToolNotice
from dimos_streams.dimos_skills.server import ToolServer
from dimos_streams.dimos_skills.streams import DimosToolStream
from dimos_streams.dimos_skills.tools import Tool
from dimos_streams.errors import SkillError, StreamClosedError
from dimos_streams.skill import Call

_LOOK_S = 0.25
_AGAIN_S = 2.0
"""Seconds after which a tool that goes on is asked again to end: what ends it may have come before what starts it."""
_MAX_SAID = 2000


@dataclass(frozen=True, slots=True)
class DimosToolCall:
    """A tool at work for a call."""

    tool: Tool
    call: Call
    arguments: dict[str, Any]
    token: str
    stream: DimosToolStream
    server: ToolServer
    config: DimosSkillsConfig
    holders: Callable[[], str]
    """A function that returns who holds the robot still, empty if nobody does."""
    finish: Callable[[ToolAnswer], Awaitable[ToolResult]]
    """A function that makes a result of an answer."""

    async def run(self) -> ToolResult:
        """Return the result when the tool has answered or, if it goes on, has stopped. Raises ``SkillError``.

        If this is cancelled, the tool is asked to end, see ``_end``.
        """
        request = self._request(self.tool.name, self.arguments, self.config.answer_s, {"progressToken": self.token})
        posted = asyncio.ensure_future(request)
        posted.add_done_callback(lambda _: self.stream.changed.set())
        try:
            return await self._followed(posted)
        except asyncio.CancelledError:
            await self._end(posted)
            raise
        finally:
            await end_tasks(posted)
            if not posted.cancelled():
                posted.exception()  # it has been looked at, or comes too late

    async def _followed(self, posted: asyncio.Future[dict[str, Any]]) -> ToolResult:
        while not posted.done():
            await self._relay()
            await self._heed_holds(posted)
            await self._change()
        await self._relay()
        answer = parsed_answer(self.tool.name, posted.result())
        if not (self.tool.streams or self.stream.heard):
            return await self.finish(answer)
        result = await self.finish(answer)
        if not self.stream.has_ended():
            await self.call.update(str(result))
        last = await self._until_stopped(posted) or str(result)
        return ToolResult(f"{self.tool.name} has stopped; it said last: {last}", result.value, result.pictures)

    async def _until_stopped(self, posted: asyncio.Future[dict[str, Any]]) -> str:
        """Pass on what the tool says until it has stopped; return the last text, empty if there was none."""
        last = ""
        while True:
            last = await self._relay() or last
            if self.stream.has_ended():
                return last
            await self._heed_holds(posted)
            if self._is_lost():
                await self._end(posted, linger=False)
                raise SkillError(
                    f"nothing was heard of {self.tool.name!r} for {self.config.silence_s:g} s after the connection to"
                    f" dimos at {self.server.url} was lost: whether it goes on there is not known"
                )
            await self._change()

    async def _relay(self) -> str:
        """Pass on what has come; return the last text, empty if nothing has."""
        last = ""
        while (notice := self.stream.next()) is not None:
            last = notice.text
            await self.call.update(notice.text, **_numbers(notice))
        if self.stream.missed:
            missed, self.stream.missed = self.stream.missed, 0
            await self.call.update(f"[{missed} messages of {self.tool.name} came too fast and are left out]")
        return last

    async def _change(self) -> None:
        """Wait until something may have changed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                await self.stream.changed.wait()
        self.stream.changed.clear()

    def _is_lost(self) -> bool:
        lost_at = self.stream.lost_at
        return lost_at is not None and clock.monotonic() - lost_at > self.config.silence_s

    async def _heed_holds(self, posted: asyncio.Future[dict[str, Any]]) -> None:
        """Raise ``SkillError`` if the robot is held still, once the tool has ended."""
        holders = self.holders() if self.tool.moves else ""
        if holders:
            await self._end(posted)
            raise SkillError(
                f"{self.tool.name!r} was ended because {holders} holds the robot still; a tool of dimos can't pause:"
                " call it again when it may move"
            )

    async def _end(self, posted: asyncio.Future[dict[str, Any]], *, linger: bool = True) -> None:
        """Ask the tool to end, and wait until it has.

        dimos can end a tool only by another one, which is called again while it goes on, and once more if the tool
        has answered only after it was called. One that may move the robot and does not end is waited for, so that
        its call is seen to go on, and nothing else gets what it holds; any other one may go on in dimos.
        """
        with contextlib.suppress(StreamClosedError):  # whoever called hears no more
            early = bool(self.tool.stop) and not posted.done()
            problem, said = await self._asked_to_end()
            again = clock.monotonic() + _AGAIN_S
            wait_s = math.inf if self.tool.moves else 0.0 if problem else self.config.stop_s
            deadline = clock.monotonic() + wait_s
            while linger and not self._is_lost() and clock.monotonic() < deadline:
                late = early and posted.done()
                if self._is_over(posted) and not late:
                    break
                if late or (self.tool.stop and clock.monotonic() >= again):
                    early = early and not late
                    _, said = await self._asked_to_end(said)
                    again = clock.monotonic() + _AGAIN_S
                else:
                    await self._relay()
                    await self._change()
            await self._relay()

    async def _asked_to_end(self, before: str = "") -> tuple[bool, str]:
        """Call the tool that ends this one, and pass on what comes of it unless that is what came ``before``; return
        whether that was a problem, and what came."""
        problem, said = await self._call_to_end()
        if said != before:
            await self.call.update(f"[{said}]")
        return problem, said

    async def _call_to_end(self) -> tuple[bool, str]:
        end = "this call goes on until it has stopped" if self.tool.moves else "it may go on there"
        if not self.tool.stop:
            return True, f"dimos has no tool that ends {self.tool.name}: {end}"
        try:
            meta = {"progressToken": f"{self.token}/stop"}
            result = await self._request(self.tool.stop, {}, self.config.stop_s, meta)
            said = parsed_answer(self.tool.stop, result).text
        except SkillError as error:
            return True, f"{self.tool.name} could not be asked to end: {cut_to(str(error), _MAX_SAID)}"
        return False, f"{self.tool.stop}: {cut_to(said, _MAX_SAID)}"

    def _is_over(self, posted: asyncio.Future[dict[str, Any]]) -> bool:
        goes_on = self.tool.streams or self.stream.heard
        return posted.done() and (not goes_on or self.stream.has_ended() or not _succeeded(posted))

    def _request(self, tool: str, arguments: dict[str, Any], within_s: float, meta: dict[str, Any]) -> Any:
        params = {"name": tool, "arguments": arguments, "_meta": meta}
        return self.server.request("tools/call", params, within_s=within_s)


def _succeeded(posted: asyncio.Future[dict[str, Any]]) -> bool:
    return not posted.cancelled() and posted.exception() is None


def _numbers(notice: ToolNotice) -> dict[str, float]:
    numbers = {"progress": notice.progress, "total": notice.total}
    return {name: value for name, value in numbers.items() if value is not None}
