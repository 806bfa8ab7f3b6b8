"""Modules that share a fate, as those of one process do: crash them, start them again, in virtual or real time.

part = CrashablePart(bus, lambda context: [FollowPerson(name="follow", context=context)])
await part.start()
part.crash()           # nothing more of it is sent, stored or answered
await part.start()     # fresh modules; what was in memory is gone
await part.stop()      # in good order
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from dimos_streams.bridge.module import Bridge
from dimos_streams.bus import Bus
from dimos_streams.errors import DimosStreamsError
from dimos_streams.module import Module, RunContext, Services
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.testing.faults.fault_bus import FaultBus, Faults

T = TypeVar("T")

Build = Callable[[RunContext], Sequence[Module]]


class PartDownError(DimosStreamsError):
    """The error that the part does not run, or crashed before it answered."""


@dataclasses.dataclass(eq=False)
class _Life:
    """The objects that one start of a part owns."""

    bus: FaultBus
    host: ModuleHost
    context: RunContext
    requests: dict[asyncio.Task[Any], None] = dataclasses.field(default_factory=dict)
    over: bool = False


class CrashablePart:
    """A host with its modules on a bus that others share. Each start gives it fresh modules, a fresh access to the
    bus (with ``faults``, by ``seed`` and the number of the start) and services of its own.

    From outside, a crash is indistinguishable from SIGKILL: what its tasks still do while they end reaches nobody.
    A bridge in it keeps what was committed to its journal, if the journal is in a file.
    """

    def __init__(
        self,
        bus: Bus,
        build: Build,
        *,
        topics: Mapping[str, str] | None = None,
        faults: Faults | None = None,
        seed: int = 0,
        context: RunContext | None = None,
    ) -> None:
        """``topics`` are those of the modules' streams; by default stream ``x`` has topic ``/x``."""
        self.faults = faults or Faults()
        self.starts = 0
        self._bus = bus
        self._build = build
        self._topics = topics
        self._seed = seed
        self._context = context or RunContext()
        self._life: _Life | None = None
        self._ending: dict[asyncio.Task[None], None] = {}

    @property
    def running(self) -> bool:
        """True if it was started, and has not been stopped or crashed since."""
        return self._life is not None

    @property
    def bus(self) -> FaultBus:
        """Its access to the bus in this life: to partition it, or change its faults. Raises ``PartDownError``."""
        return self._alive().bus

    @property
    def services(self) -> Services:
        """The services of its modules in this life. Raises ``PartDownError``."""
        return self._alive().context.services

    def module(self, name: str) -> Module:
        """A running module. Raises ``PartDownError`` or ``KeyError``."""
        for module in self._alive().host.modules:
            if module.name == name:
                return module
        raise KeyError(name)

    async def start(self) -> None:
        """Start fresh modules. Raises what ``ModuleHost.start`` raises, and ``PartDownError`` if it runs already."""
        if self._life is not None:
            raise PartDownError("a part that runs can't be started; crash or stop it first")
        self.starts += 1
        bus = FaultBus(self._bus, self.faults, seed=self._seed * 1_000_003 + self.starts)
        await bus.open()
        context = dataclasses.replace(self._context, services=Services())
        life = self._life = _Life(bus, ModuleHost(bus), context)
        for module in self._build(context):
            topics = {name: f"/{name}" for name in module.streams()} if self._topics is None else self._topics
            await life.host.start(module, topics)

    def crash(self) -> None:
        """End it at once and without a word; requests that it has not answered fail. Twice is fine."""
        life, self._life = self._life, None
        if life is None:
            return
        life.over = True
        life.bus.cut()
        for module in life.host.modules:
            if isinstance(module, Bridge):
                _cut_off(module)
        for request in life.requests:
            request.cancel()
        self._ending[asyncio.get_running_loop().create_task(life.host.stop(), name="end of a crashed part")] = None

    async def stop(self) -> None:
        """Stop it in good order, and wait for what is left of earlier crashes. Twice is fine."""
        life, self._life = self._life, None
        if life is not None:
            await life.host.stop()
            await life.bus.close()
        while self._ending:
            task = next(iter(self._ending))
            del self._ending[task]
            await task

    async def ask(self, request: Coroutine[Any, Any, T]) -> T:
        """Run a request in it, as one that comes over a connection. Raises ``PartDownError`` if it crashes first."""
        life = self._life
        if life is None:
            request.close()
            raise PartDownError("the part does not run")
        task = asyncio.get_running_loop().create_task(request)
        life.requests[task] = None
        try:
            return await task
        except asyncio.CancelledError:
            asking = asyncio.current_task()
            if life.over and not (asking is not None and asking.cancelling()):
                raise PartDownError("the part crashed before it answered") from None
            raise
        finally:
            life.requests.pop(task, None)

    def _alive(self) -> _Life:
        if self._life is None:
            raise PartDownError("the part does not run")
        return self._life


def _cut_off(bridge: Bridge) -> None:
    """Take its file and its readers from a bridge whose tasks have not ended yet."""
    bridge.broadcast.close()
    bridge.journal.close()
    bridge.journal.path = None
    bridge.journal.open()
