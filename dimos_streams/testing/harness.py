"""Runs modules alone on a memory bus: feed inputs, call skills, collect outputs.

    async def test_it() -> None:
        async with ModuleHarness(FollowPerson, {"distance_m": 1.5}) as harness:
            harness.feed("detections", detections)
            call = await harness.call("follow_person", description="the man in red")
            assert await call.answer() == "Following the man in red"
            assert harness.sent("cmd_vel")[-1].linear.x > 0

With ``dimos_streams.clock.run_virtual`` its time is virtual. Nothing is mocked: the module runs in its real host
and its calls travel over the bus as they do live.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Generator, Mapping
from functools import partial
from typing import Any, Generic, NoReturn, Self

from pydantic import ValidationError
from typing_extensions import TypeVar

from dimos_streams.blueprint.checks.argument_check import shown
from dimos_streams.blueprint.classes import module_config
from dimos_streams.blueprint.model import ModuleSpec
from dimos_streams.bus import Bus, Subscription, create_bus
from dimos_streams.errors import ModuleFailedError, UserError, suggest
from dimos_streams.messages.base import LcmStruct, Message
from dimos_streams.messages.codec import channel_name, decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.messages.plain_classes import accepted
from dimos_streams.module import Module, ModuleConfig, RunContext
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.skill.spec import SkillSpec
from dimos_streams.streams import StreamSpec
from dimos_streams.testing.block import Block
from dimos_streams.testing.bus_calls import asking, find_offered, request_call
from dimos_streams.testing.harness_call import HarnessCall, check_awaited
from dimos_streams.tool_stream.arguments.plain_arguments import plain_arguments
from dimos_streams.tool_stream.calling.withdrawal import request_end
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.protocol.channels import STATUS
from dimos_streams.tool_stream.receiving.receiver import ToolStreamReceiver

M = TypeVar("M", bound=Module, covariant=True, default=Module)
"""The class of the module under test."""


def _made(
    cls: type[M], config: Mapping[str, Any] | ModuleConfig | None, name: str | None, context: RunContext | None
) -> M:
    try:
        return cls(config, name=name, context=context)
    except ValidationError:
        if not isinstance(config, ModuleConfig):
            spec = ModuleSpec(name=name or cls.__name__, type=f"{cls.__module__}:{cls.__name__}", config=config or {})
            module_config(spec, cls)  # raises what a run says of such settings
        raise


def _check_not_replaced(module: Module, skill: SkillSpec) -> None:
    """Raise ``UserError`` if something stands before the method of a skill that no call would run."""
    attribute = getattr(skill.function, "__name__", "")
    if attribute in vars(module):
        of = type(module).__name__
        raise UserError(
            f"{attribute!r} of this {of} has been replaced, and calls run the method of the class: use"
            f" mock_skill({of}, {skill.name!r}, …), or replace what the method uses"
        )


class ModuleHarness(Generic[M]):
    """One module, or several with ``add``, on a memory bus. Use with ``async with``."""

    def __init__(
        self,
        module: type[M] | M,
        config: Mapping[str, Any] | ModuleConfig | None = None,
        *,
        name: str | None = None,
        context: RunContext | None = None,
        unwired: tuple[str, ...] = (),
        bus: Bus | None = None,
    ) -> None:
        """``unwired`` names optional inputs to leave unconnected. A bus that is given must be open and stays so.

        Raises ``UserError`` for a config that is not valid, as a run does.
        """
        if isinstance(module, type):
            module = _made(module, config, name, context)
        self.module: M = module
        self._block = Block("ModuleHarness", f"async with ModuleHarness({type(module).__name__}, …) as harness:")
        if not (bus is None or isinstance(bus, Bus)):
            raise UserError(f"bus={shown(bus)}: it must be a bus that is open, as create_bus makes one of a URL")
        self._unwired = unwired
        self._given_bus = bus
        self.bus = bus or create_bus("memq://")
        self._host = ModuleHost(self.bus)
        self._receiver = ToolStreamReceiver(self.bus, self._deliver, may_open=self._may_open, name="harness")
        self._streams: dict[str, StreamSpec] = {}
        self._sent: dict[str, list[Message]] = {}
        self._collected: set[str] = set()
        """The channels of what modules send."""
        self._calls: dict[str, HarnessCall] = {}
        self._other_events: list[ToolEvent] = []
        self._numbers = itertools.count(1)
        self._subscriptions: list[Subscription] = []
        self._failure: ModuleFailedError | None = None

    async def __aenter__(self) -> Self:
        if self._given_bus is None:
            await self.bus.open()
        self._block.begin()
        self._receiver.start()
        self._subscriptions.append(self.bus.subscribe(STATUS, self._on_status))
        with contextlib.ExitStack() as undo:
            undo.callback(self._receiver.stop)
            await self.add(self.module, unwired=self._unwired)
            undo.pop_all()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *exc_info: object) -> None:
        failed = self._host.failed() if kind is None else []  # beside an error of the test they are logged
        failure = self._host.report_failure(failed[0]) if failed else None
        try:
            await self._host.stop()
            if failure is not None:
                failure.add_note("a test that expects it awaits `harness.failure()` in the block")
                raise failure
            if kind is None:
                check_awaited(
                    [*self._other_events, *(event for call in self._calls.values() for event in call.events)]
                )
        finally:
            self._block.end()
            self._receiver.stop()
            for subscription in self._subscriptions:
                subscription.close()
            if self._given_bus is None:
                await self.bus.close()

    def __await__(self) -> Generator[Any, None, NoReturn]:
        """Raise ``UserError``: nothing is awaited where ``async with`` is meant."""
        raise self._block.misused("await", "begins with `async with`")

    async def add(self, module: Module, *, unwired: tuple[str, ...] = ()) -> None:
        """Run another module; streams of equal name and type are connected."""
        self._block.check(f"add({type(module).__name__})")
        if not isinstance(module, Module):
            raise UserError(f"a module is an instance of its class, as MODULE(), and not {shown(module)}")
        if isinstance(unwired, str):
            raise UserError(f"unwired are names of streams, as unwired=({unwired!r},), and not {unwired!r}")
        specs = module.streams()
        for name in unwired:
            if name not in specs:
                raise UserError(f"{type(module).__name__} has no stream {name!r}{suggest(name, specs)}")
        for name, spec in specs.items():
            self._streams.setdefault(name, spec)
            if spec.direction == "out":
                self._collect(spec)
        topics = {name: f"/{name}" for name in specs if name not in unwired}
        await self._host.start(module, topics)

    def feed(self, stream: str, message: LcmStruct) -> None:
        """Publish a message to an input, whose ``queue`` says how many are kept that the module has not read."""
        self._block.check(f"feed({stream!r})")
        kinds = self._spec(stream).messages
        for kind in kinds:
            typed = accepted(message, kind)
            if typed is not None:
                self.bus.publish(channel_name(f"/{stream}", kind), encode(typed))
                return
        takes = " or ".join(kind.msg_name for kind in kinds)
        raise TypeError(f"stream {stream!r} takes {takes}, not {type(message).__name__}")

    def sent(self, stream: str) -> list[Any]:
        """Return all messages that an output has published so far. Raises ``UserError`` for what is no output."""
        self._block.check_begun(f"sent({stream!r})")
        self._spec(stream)
        if stream not in self._sent:
            outputs = ", ".join(self._sent) or "none"
            raise UserError(f"{stream!r} is an input, and no module here has such an output (outputs: {outputs})")
        return self._sent[stream]

    async def call(self, skill: str, /, *, caller: str = "test", **arguments: Any) -> HarnessCall:
        """Call a skill of the module under test (or of the added module that has it).

        Raises ``UnknownSkillError`` if no module has it, ``SkillArgumentError`` for arguments that have no form in
        JSON.
        """
        self._block.check(f"call({skill!r})")
        call_id = f"test-{next(self._numbers)}"
        module, spec = find_offered(skill, self._host.modules)
        _check_not_replaced(module, spec)
        plain = plain_arguments(skill, arguments)
        call = HarnessCall(call_id, skill, partial(request_end, self.bus, call_id))
        self._calls[call_id] = call
        names = {"module": module.name, "skill": skill, "caller": caller}
        with asking(lambda: request_call(self.bus, call_id, arguments=plain, **names)):
            await call.wait_for(lambda event: event.type == "open")
        return call

    def events(self) -> list[ToolEvent]:
        """Events of calls that the test did not make itself."""
        return list(self._other_events)

    def failed(self) -> BaseException | None:
        """The exception by which one of the modules' tasks ended, if any did. Leaving the harness raises
        ``ModuleFailedError`` for one that the test has not asked for."""
        if self._failure is None and (failed := self._host.failed()):
            self._failure = self._host.report_failure(failed[0])
        return None if self._failure is None else self._failure.__cause__

    async def failure(self, timeout_s: float = 30.0) -> BaseException:
        """Wait until a task of one of the modules has failed, and return what ``failed`` returns then.

        Raises ``TimeoutError`` after ``timeout_s`` of the loop's time.
        """
        self._block.check("failure()")
        if self.failed() is None:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._host.wait_for_failure()
            except ModuleFailedError as error:
                self._failure = error
            except TimeoutError:
                text = f"no task of a module failed within {timeout_s:g} s of its time"
                raise TimeoutError(f"{text} (timeout_s={timeout_s:g} sets that)") from None
        failed = self.failed()
        assert failed is not None, "it is what was waited for"
        return failed

    def _spec(self, stream: str) -> StreamSpec:
        if stream not in self._streams:
            raise UserError(f"no stream is called {stream!r}{suggest(stream, self._streams)}")
        return self._streams[stream]

    def _collect(self, spec: StreamSpec) -> None:
        channel = channel_name(f"/{spec.name}", spec.message)
        if channel in self._collected:
            return  # another module's output of that name, whose channel is the same
        self._collected.add(channel)
        collected = self._sent.setdefault(spec.name, [])

        def take(channel: str, data: bytes) -> None:
            collected.append(decode(spec.message, data, channel=channel))

        self._subscriptions.append(self.bus.subscribe(channel, take))

    def _on_status(self, channel: str, data: bytes) -> None:
        self._receiver.on_status(decode(ModuleStatus, data, channel=channel))

    def _may_open(self, event: ToolEvent) -> bool:
        """Return whether an event may begin a call; one of the test's must be from a module of the harness."""
        return event.call_id not in self._calls or self._host.directory.speaks_for(event.module, event.instance)

    def _deliver(self, events: list[ToolEvent]) -> None:
        for event in events:
            call = self._calls.get(event.call_id)
            if call is None:
                self._other_events.append(event)
            else:
                call.add(event)
