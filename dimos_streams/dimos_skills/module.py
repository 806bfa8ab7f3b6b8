"""The module that takes the tools of a dimos ``McpServer`` in as skills."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from dimos_streams import clock
from dimos_streams.client.backoff import Backoff
from dimos_streams.client.sse_client import SseClient, SseError
from dimos_streams.common.json.writing import json_text
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.tasks import end_tasks_silently
from dimos_streams.dimos_skills.answers import Picture, ToolAnswer, ToolResult, result_of
from dimos_streams.dimos_skills.config import DimosSkillsConfig
from dimos_streams.dimos_skills.notices import parsed_notice
from dimos_streams.dimos_skills.server import ToolServer
from dimos_streams.dimos_skills.streams import ToolStreams
from dimos_streams.dimos_skills.tool_call import DimosToolCall
from dimos_streams.dimos_skills.tools import Tool, ToolList, listed_tools
from dimos_streams.errors import CallRejectedError, MessageError, SkillError, SkillUnavailableError, UserError
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.module import WARNINGS, Module
from dimos_streams.module.kept_pictures import keep_picture
from dimos_streams.operator.holding import HoldInput
from dimos_streams.skill import Call, SkillSpec
from dimos_streams.skill.names import public_prefix
from dimos_streams.streams import In
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory

_LIST_S = 10.0
"""Seconds for the server to answer with the list of tools."""
_OPEN_S = 2.0
"""Seconds for which a call waits for the connection by which tools are heard."""
_NONE_YET_S = 0.5
_PING_S = 20.0
"""The interval at which dimos says that a connection lives on which nothing else is said."""
_MAX_WARNINGS = 3000
"""Maximum size of the warnings about tools that are no skills, in bytes as JSON."""


class DimosSkills(Module):
    """Offers the tools of a dimos server for as long as it runs, and through its absences."""

    config: DimosSkillsConfig
    hold: In[Hold] = In(required=False, external=True)
    skills_vary = True
    _found = ToolList()
    _server: ToolServer | None = None

    async def start(self) -> None:
        """Begin to look for the server. Raises ``UserError`` in virtual time, which the server does not keep."""
        if clock.is_virtual():
            raise UserError(f"module {self.name!r} talks to a server, which keeps no virtual time: leave it out")
        self._log = LimitedLog(self.log, period_s=10.0)
        self._lost = False
        self._streams = ToolStreams()
        self._running = 0
        self._connected = asyncio.Event()
        self._problem = "it was not asked yet"
        self.health = f"dimos at {self.config.url} is not there yet"
        self._server = ToolServer(self.config.url, threads=2 * self.config.max_calls + 1)
        self._holds = HoldInput(self.hold, self.name)
        self.hold.on_message(lambda _: self._streams.wake() if self._holds.held else None)

    async def stop(self) -> None:
        """Cut the calls that are under way."""
        if self._server is not None:
            self._server.close()
            self._streams.abandon()

    def offered_skills(self) -> Mapping[str, SkillSpec]:
        """See ``Module``: the tools of the server as they were listed last, while it is away, too."""
        return self._found.skills

    async def run(self) -> None:
        """Look for the server and listen to it, and do so again whenever it is lost."""
        backoff = Backoff(self.random, initial_s=0.2, maximum_s=self.config.poll_s)
        while True:
            try:
                await self._list_tools()
                await self._attend(backoff)
            except SkillError as error:
                self._lose(str(error))
            except SseError as error:
                self._lose(f"{error}; a server that answers GET there with an event stream is needed")
            await asyncio.sleep(backoff.next())

    async def _attend(self, backoff: Backoff) -> None:
        """Listen until the connection is lost. Raises ``SkillError`` or ``SseError``."""
        listening = asyncio.create_task(self._listen(), name=f"{self.name}:notices")
        failures = 0
        try:
            while not (await asyncio.wait([listening], timeout=self._pause_s()))[0]:
                try:
                    await self._list_tools()
                    failures = 0
                    backoff.reset()  # not before: a server that leaves again and again is not asked all the time
                except SkillError:
                    failures += 1
                    if failures > 1:
                        raise
            listening.result()
        finally:
            await end_tasks_silently(listening)

    def _pause_s(self) -> float:
        """Return the pause until the next look at the list: short while there are no tools, because dimos has none
        while it starts, and does not say when it has."""
        return self.config.poll_s if self._found.skills else min(_NONE_YET_S, self.config.poll_s)

    async def _listen(self) -> None:
        """Take what the server says on one connection. Raises ``SkillUnavailableError`` when that ends, or
        ``SseError`` for anything that is not an event."""
        loop, problem = asyncio.get_running_loop(), "the connection was closed"

        def on_connect() -> None:
            loop.call_soon_threadsafe(self._on_connect)

        def on_loss(why: str) -> None:
            nonlocal problem
            problem = why
            client.request_stop()  # what was said meanwhile is not said again: each connection is a new beginning

        client = SseClient(self.config.url, rng=self.random, ping_s=_PING_S, on_connect=on_connect, on_loss=on_loss)
        async with contextlib.aclosing(client.events()) as events:
            async for event in events:
                self._take(event.data)
        raise SkillUnavailableError(f"dimos at {self.config.url} can't be heard: {problem}")

    def _on_connect(self) -> None:
        self._lost = False
        self._connected.set()
        self.health = "ok"
        self.log.info("dimos at %s is heard", self.config.url)

    def _lose(self, problem: str) -> None:
        self._connected.clear()
        self._streams.lose()
        if not self._lost:
            self._lost = True
            self.log.warning("%s", problem)
        self._problem = self.health = problem

    def _take(self, data: str) -> None:
        try:
            notice = parsed_notice(data)
        except ValueError as error:
            self._log.warning("dimos at %s says what is no notice: %s: %s", self.config.url, error, data[:200])
            return
        late = self._streams.take(notice) if notice is not None else ""
        if notice is not None and late:
            self._log.warning("%s goes on after its call was over: put it into `streams`: %s", late, notice.text)

    async def _list_tools(self) -> None:
        """Take over the tools that the server has. Raises ``SkillError``."""
        result = await self._asked().request("tools/list", {}, within_s=_LIST_S)
        found = listed_tools(result, self.config, type(self).run_tool)
        found.warnings += self._taken_names(found)
        if _described(found) != _described(self._found):
            self._found, before = found, self._found
            try:
                self.offer_anew()
            except TypeError as error:
                self._found = before
                raise SkillError(f"the tools of dimos at {self.config.url} can't be offered: {error}") from error
            self.log.info("%d tools of dimos at %s are skills", len(found.skills), self.config.url)
        self.report_state({WARNINGS: _fitting(found.warnings)} if found.warnings else {})

    def _taken_names(self, found: ToolList) -> list[str]:
        """Return warnings about skills whose names others had first."""
        directory, prefix = self.context.services.get(ModuleDirectory), public_prefix(self.context.namespace)
        if directory is None:
            return []
        known = [directory.named(f"{prefix}{name}") for name in found.skills]
        return [
            f"skill {info.name!r} is offered by module {module.name!r}, too, which gets its calls; change `prefix`"
            for module, info in filter(None, known)
            if module.name != self.name
        ]

    async def run_tool(self, tool: Tool, call: Call, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool for a call. Raises ``SkillError``."""
        self._check_holds(tool)
        if self._running >= self.config.max_calls:
            raise CallRejectedError(
                f"{self._running} calls of dimos' tools run already, as many as `max_calls` allows"
            )
        await self._open()
        self._check_holds(tool)  # again: that took a while
        token = f"dimos_streams:{call.id}"
        self._running += 1
        try:
            with self._streams.open(token, tool.name) as stream:
                run = DimosToolCall(
                    tool,
                    call,
                    arguments,
                    token,
                    stream,
                    self._asked(),
                    self.config,
                    self._holders,
                    lambda answer: self._finished(call, answer),
                )
                return await run.run()
        finally:
            self._running -= 1

    def _check_holds(self, tool: Tool) -> None:
        """Raise ``CallRejectedError`` for a tool that may move a robot which is held still."""
        holders = self._holders() if tool.moves else ""
        if holders:
            raise CallRejectedError(f"{tool.name!r} may move the robot, which {holders} holds still")

    async def _open(self) -> None:
        """Wait for the connection by which tools are heard. Raises ``SkillUnavailableError``."""
        try:
            async with asyncio.timeout(_OPEN_S):
                await self._connected.wait()
        except TimeoutError as error:
            raise SkillUnavailableError(self._problem) from error

    def _asked(self) -> ToolServer:
        assert self._server is not None, "it was made in start"
        return self._server

    def _holders(self) -> str:
        return self._holds.holders

    async def _finished(self, call: Call, answer: ToolAnswer) -> ToolResult:
        return result_of(answer, await self._kept(call, answer.pictures))

    async def _kept(self, call: Call, pictures: tuple[Picture, ...]) -> tuple[str, ...]:
        """The paths of an answer's pictures, as far as there is room for them, and they may be shown."""
        paths = []
        for number, picture in enumerate(pictures if self.context.run_dir is not None else ()):
            assert self.context.run_dir is not None
            name = f"{self.name.replace('/', '_')}-{call.id.replace('/', '_')}-{number}.{picture.suffix}"
            try:
                path = await self.run_blocking(keep_picture, self.context.run_dir, name, picture.data)
            except (MessageError, OSError) as error:  # a full disk keeps no answer back
                self.log.warning("a picture can't be kept: %s", error)
            else:
                paths.append(str(path))
        return tuple(paths)


def _described(found: ToolList) -> list[Any]:
    """Return what callers see of a list, or go by."""
    return [(spec.info(), found.tools[name]) for name, spec in found.skills.items()]


def _fitting(warnings: list[str]) -> list[str]:
    """Return as many warnings as there is room for in a module's state."""
    shown, left = list[str](), _MAX_WARNINGS
    for number, warning in enumerate(warnings):
        left -= len(json_text(warning)) + 1
        if left < 0:
            return [*shown, f"and {len(warnings) - number} more"]
        shown.append(warning)
    return shown
