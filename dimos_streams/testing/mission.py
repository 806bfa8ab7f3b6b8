"""A blueprint in virtual time, driven and looked at by a test.

    async with MissionRun("follow-person", seed=7) as run:
        await run.say("follow the person in the red shirt")
        await run.until(event("update", skill="follow_person", text="Following"))
        assert run.distance("base_link", "person_red") < 4.0

Everything that is published, but for pictures, goes into a recording.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from dimos_streams import clock
from dimos_streams.blueprint.checks.argument_check import check_blueprint, plain
from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.model import Blueprint
from dimos_streams.blueprint.settings import defaults_of
from dimos_streams.blueprint.wiring import message_types
from dimos_streams.bus import Bus
from dimos_streams.common.tasks import end_tasks_silently
from dimos_streams.errors import UserError, suggest
from dimos_streams.messages.tf2_msgs import TFMessage
from dimos_streams.module import Module
from dimos_streams.recording.metadata import describe
from dimos_streams.recording.recorder import Recorder, RecordingOptions, recording
from dimos_streams.recording.selection import Selection
from dimos_streams.runtime.facts import run_facts
from dimos_streams.runtime.in_process import InProcessRun
from dimos_streams.runtime.options import RunOptions
from dimos_streams.testing.block import Block
from dimos_streams.testing.bus_calls import find_offered, public_skills, request_call
from dimos_streams.testing.harness_call import HarnessCall, check_awaited
from dimos_streams.testing.patterns import EventPattern
from dimos_streams.testing.topic import Topic, channel_of
from dimos_streams.testing.transcript import Transcript
from dimos_streams.tool_stream.arguments.plain_arguments import plain_arguments
from dimos_streams.tool_stream.calling.withdrawal import request_end
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.gateway import SkillGateway
from dimos_streams.tool_stream.protocol.channels import EVENTS
from dimos_streams.tool_stream.wire.unpacking import unpack_event

CALLER = "test"
NO_PICTURES = ("*#sensor_msgs.Image",)
_TRUTH = "/ground_truth"
_LOOK_EVERY_S = 0.02
_SHOWN_EVENTS = 8


class MissionRun:
    """One run. Use with ``async with``, in virtual time: ``dimos_streams.clock.run_virtual``."""

    def __init__(
        self,
        blueprint: str | Blueprint,
        *,
        record: Path,
        seed: int = 0,
        settings: Mapping[str, Any] | None = None,
        faults: Callable[[Bus, str], Bus] | None = None,
        without: tuple[str, ...] = NO_PICTURES,
    ) -> None:
        """``record`` is the path of the recording; ``without`` are patterns of channels that are neither recorded
        nor, for the recording's sake, made. ``faults`` wraps the bus, see ``FaultInjection``."""
        check_blueprint(blueprint, "a run")
        options = RunOptions(bus_url="memq://", seed=seed, wrap_bus=faults)
        described = resolve(blueprint) if isinstance(blueprint, str) else blueprint
        self.blueprint = described.configured(plain(settings or {}), source="test")
        self.recording = record
        self.events: list[ToolEvent] = []
        """The events of all calls, each call's in order."""
        self._block = Block("MissionRun", "async with blueprint_run(…) as run:")
        self._selection = Selection(exclude=without)
        self._asked_for: set[str] = set()
        self._topics: dict[str, Topic] = {}
        self._calls: dict[str, HarnessCall] = {}
        self._changed = asyncio.Event()
        self._recorder: Recorder | None = None
        self._without_bridge = 0
        metadata = describe(
            blueprint=self.blueprint.model_dump(mode="json"),
            defaults=defaults_of(self.blueprint),
            seed=seed,
            mode="virtual",
            selection=self._selection,
            environment=run_facts(),
            types=message_types(self.blueprint),
        )
        self._recording_options = RecordingOptions(path=record, selection=self._selection, metadata=metadata)
        self._run = InProcessRun(self.blueprint, options, attach=[self._record, self._listen])
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> MissionRun:
        if not clock.is_virtual():
            raise UserError("a MissionRun needs virtual time: run the test's coroutine with clock.run_virtual")
        await self._run.start()
        self._block.begin()
        self._tasks.append(asyncio.create_task(self._run.wait(), name="test watches modules"))
        if self._run.gateway is not None:
            self._tasks.append(asyncio.create_task(self._read(self._run.gateway), name="test reads events"))
        for task in self._tasks:
            task.add_done_callback(lambda _: self._changed.set())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *exc_info: object) -> None:
        try:
            if kind is None:
                self._check()
                check_awaited(self.events)
        finally:
            self._block.end()
            await self._run.stop()
            await end_tasks_silently(*self._tasks)

    def __await__(self) -> Generator[Any, None, NoReturn]:
        """Raise ``UserError``: nothing is awaited where ``async with`` is meant."""
        raise self._block.misused("await", "begins with `async with`")

    @property
    def bus(self) -> Bus:
        """The bus of the run."""
        return self._run.bus

    @property
    def gateway(self) -> SkillGateway:
        """The bridge. Raises ``UserError`` if the blueprint has none."""
        self._block.check("gateway")
        if self._run.gateway is None:
            raise UserError(f"blueprint {self.blueprint.name!r} has no bridge")
        return self._run.gateway

    @property
    def conversation(self) -> Transcript:
        """The conversation of the (first) agent. Raises ``UserError`` if there is none."""
        self._block.check_begun("conversation")
        for name in self.blueprint.modules:
            conversation = getattr(self._run.module(name), "conversation", None)
            if conversation is not None:
                return Transcript(conversation)
        raise UserError(f"blueprint {self.blueprint.name!r} has no agent")

    def module(self, name: str) -> Module:
        """A running module. Raises ``UserError`` for an unknown name."""
        self._block.check_begun(f"module({name!r})")
        return self._run.module(name)

    async def say(self, text: str, *, to: str = "say") -> HarnessCall:
        """Tell an agent something; the call lasts as long as what it leads to."""
        return await self.call(to, text=text)

    async def call(self, skill: str, /, **arguments: Any) -> HarnessCall:
        """Call a skill. Raises what ``SkillGateway.call`` raises, for instance ``CallRejectedError``, and
        ``SkillArgumentError`` for arguments without a JSON form."""
        self._block.check(f"call({skill!r})")
        plain = plain_arguments(skill, arguments)
        if self._run.gateway is None:
            call_id = self._request(skill, plain)
        else:
            call_id = await self._run.gateway.call(skill, plain, caller=CALLER)
        call = self._calls[call_id] = HarnessCall(call_id, skill, partial(request_end, self.bus, call_id))
        for known in (event for event in self.events if event.call_id == call_id):
            call.add(known)
        return call

    async def until(
        self, condition: EventPattern | Callable[[], object], timeout_s: float = 60.0
    ) -> ToolEvent | None:
        """Wait until an event fits, past ones included, and give it, or until a function is true.

        Raises ``AssertionError``, which shows the newest events, after ``timeout_s`` of virtual time, and
        ``ModuleFailedError`` when a module fails; leaving the block does that too.
        """
        __tracebackhide__ = True
        self._block.check("until")
        try:
            async with asyncio.timeout(timeout_s):
                if isinstance(condition, EventPattern):
                    return await self._event(condition)
                while not condition():
                    self._check()
                    await asyncio.sleep(_LOOK_EVERY_S)
                return None
        except TimeoutError:
            raise AssertionError(self._what_did_not_come(condition, timeout_s)) from None

    def _what_did_not_come(self, condition: object, timeout_s: float) -> str:
        """The text about a condition that was waited for in vain, with the newest events."""
        what, near = "the condition", ""
        if isinstance(condition, EventPattern):
            what, modules = str(condition), self.blueprint.modules
            skills = [*public_skills(map(self._run.module, modules)), *(event.skill for event in self.events)]
            near = condition.misspelt(skills, [*modules, *(event.module for event in self.events)])
        newest = "".join(f"\n  {_describe(event)}" for event in self.events[-_SHOWN_EVENTS:])
        came = f"newest events:{newest}" if newest else "there was no event at all"
        return f"{what} did not come within {timeout_s:g} s{near}; {came}"

    async def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        await asyncio.sleep(seconds)

    def topic(self, name: str) -> Topic:
        """The messages that came on a topic (``"/odom"``) or channel. A picture's topic is listened to from the first
        time on that it is asked for. Raises ``UserError`` for a topic that nothing in the blueprint has."""
        self._block.check_begun(f"topic({name!r})")
        channel = channel_of(name, self.blueprint, self._topics)
        self._asked_for.add(channel)
        return self._topic(channel)

    def position(self, frame: str = "base_link") -> tuple[float, float]:
        """Return the true place of the robot or a person (``"person_red"``), in metres; needs the stock simulator.

        Raises ``UserError`` for an unknown frame, and before the simulator has said where anything is.
        """
        truth: TFMessage | None = self.topic(_TRUTH).last
        if truth is None:
            wait = f"await run.until(lambda: run.topic({_TRUTH!r}).last)"
            raise UserError(f"nothing has come on {_TRUTH} yet, so {frame!r} has no place: first `{wait}`")
        places = {one.child_frame_id: one.transform.translation for one in truth.transforms}
        if frame not in places:
            raise UserError(f"nothing is known of {frame!r}{suggest(frame, places)} (known: {', '.join(places)})")
        return places[frame].x, places[frame].y

    def distance(self, one: str, other: str) -> float:
        """Metres between two frames, see ``position``."""
        return math.dist(self.position(one), self.position(other))

    @contextlib.asynccontextmanager
    async def _record(self, bus: Bus) -> AsyncIterator[None]:
        async with recording(bus, self._recording_options) as self._recorder:
            yield

    @contextlib.asynccontextmanager
    async def _listen(self, bus: Bus) -> AsyncIterator[None]:
        def wants(channel: str) -> bool:
            return self._selection(channel) or channel in self._asked_for

        subscription = bus.subscribe_all(self._on_message, capacity=1 << 16, wants=wants)
        try:
            yield
        finally:
            subscription.close()

    def _on_message(self, channel: str, data: bytes) -> None:
        self._topic(channel).receive(data)
        if channel == EVENTS and self._run.gateway is None:
            self._take(unpack_event(data))

    async def _read(self, gateway: SkillGateway) -> None:
        async for placed in gateway.events(after=0):
            self._take(placed.event)

    def _take(self, event: ToolEvent) -> None:
        self.events.append(event)
        if event.call_id in self._calls:
            self._calls[event.call_id].add(event)
        self._changed.set()

    async def _event(self, pattern: EventPattern) -> ToolEvent:
        looked_at = 0
        while True:
            self._changed.clear()
            for event in self.events[looked_at:]:
                if pattern.fits(event):
                    return event
            looked_at = len(self.events)
            self._check()
            await self._changed.wait()

    def _check(self) -> None:
        """Raise ``ModuleFailedError`` if a module has failed, and what ended the reading of events."""
        for task in self._tasks:
            if task.done():
                task.result()

    def _topic(self, channel: str) -> Topic:
        if channel not in self._topics:
            self._topics[channel] = Topic(channel, self.recording, self._flush)
        return self._topics[channel]

    def _flush(self) -> None:
        """Flush the recording for a reader, who wants all of it: otherwise that happens only as time passes."""
        if self._recorder is not None:
            self._recorder.writer.flush()

    def _request(self, skill: str, arguments: Mapping[str, Any]) -> str:
        """Call a skill where there is no bridge."""
        self._without_bridge += 1
        call_id = f"{CALLER}-{self._without_bridge}"
        module, _ = find_offered(skill, map(self._run.module, self.blueprint.modules))
        request_call(self.bus, call_id, module=module.name, skill=skill, caller=CALLER, arguments=arguments)
        return call_id


def _describe(event: ToolEvent) -> str:
    return f"{event.skill} [{event.call_id}] {event.type}: {event.text}"
