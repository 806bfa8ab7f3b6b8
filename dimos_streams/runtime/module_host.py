"""The host of modules on one loop and bus: it connects their streams, calls their hooks and hosts their skills."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from dimos_streams.bus import Bus
from dimos_streams.common.tasks import apart, ends_within, is_stray, stray_cancellation
from dimos_streams.errors import ModuleFailedError, UserError
from dimos_streams.module import Clocks, Module
from dimos_streams.runtime.unfed_inputs import UnfedInputWatch
from dimos_streams.streams import In, Out
from dimos_streams.tool_stream.hosting.host import SkillHost
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.heartbeat import STOPS
from dimos_streams.tool_stream.liveness.parts import MachineClocks

STOP_BOUND_S = 3.0
"""The seconds that a module has for its end, its tasks and what its ``stop`` releases."""
_TASKS_BOUND_S = 2.0
"""The seconds of these that its tasks have: whatever they do, ``stop`` is called."""


class ModuleHost:
    """A host that starts modules one by one and stops them in reverse order. The bus must be open as long."""

    def __init__(self, bus: Bus, namespaces: Sequence[str] | None = None) -> None:
        """``namespaces`` are those of its modules, if all of them are in some: see ``ModuleDirectory``."""
        self._bus = bus
        self._skills = SkillHost(bus, namespaces)
        self._unfed_inputs = UnfedInputWatch(bus)
        self._clocks = MachineClocks(self._skills.directory)
        self._modules: list[Module] = []
        self._reported: set[Module] = set()
        """The modules whose failure somebody has been told of."""
        self._skills_started = False

    @property
    def modules(self) -> list[Module]:
        """The running modules in the order of their start."""
        return list(self._modules)

    @property
    def directory(self) -> ModuleDirectory:
        """The modules on the bus; empty before the first one was started here."""
        return self._skills.directory

    @property
    def instance(self) -> str:
        """The instance in whose name its modules speak; empty before the first one was started here."""
        return self._skills.publisher.instance

    async def start(self, module: Module, topics: Mapping[str, str]) -> None:
        """Connect, prepare and run a module. ``topics`` gives each wired stream its topic; the others stay unwired.

        Raises ``UserError`` as it is, and ``ModuleFailedError`` for whatever else the module raised; the module is
        stopped again then.
        """
        if not self._skills_started:
            self._skills.start()
            self._skills_started = True
        module.context.services.offer(Bus, self._bus)  # type: ignore[type-abstract]
        module.context.services.offer(ModuleDirectory, self.directory)
        module.context.services.offer(Clocks, self._clocks)  # type: ignore[type-abstract]
        try:
            self._connect(module, topics)
            await self._begin(module)
        except BaseException as error:
            _disconnect(module)
            if (failure := _failure_at_start(error, module.name)) is None:
                raise
            raise ModuleFailedError(f"module {module.name!r} could not start: {_last_line(failure)}") from error

    async def _begin(self, module: Module) -> None:
        """Start and run a module whose streams are connected. If that fails, it is stopped again."""
        self._modules.append(module)
        try:
            await module.start()
            module.spawn(module.run(), name="run")
            self._skills.add(module)
            self._unfed_inputs.add(module)
        except BaseException:
            await self.stop_module(module, STOPS)
            raise

    async def wait_for_failure(self) -> None:
        """Wait until a task of any module that runs now fails. Raises ``ModuleFailedError``."""
        failures = {module.failure(): module for module in self._modules}
        if not failures:
            await asyncio.get_running_loop().create_future()
        await asyncio.wait(failures, return_when=asyncio.FIRST_COMPLETED)
        raise self.report_failure(next(module for failure, module in failures.items() if failure.done()))

    def failed(self) -> list[Module]:
        """Return the running modules of which a task has failed, and nobody has been told."""
        return [each for each in self._modules if each.failure().done() and each not in self._reported]

    def report_failure(self, module: Module) -> ModuleFailedError:
        """Return the error that tells how a module has failed. What nobody is told is logged at the module's end."""
        self._reported.add(module)
        error = ModuleFailedError(_how_failed(module))
        error.__cause__ = module.failure().exception()
        return error

    async def stop(self, reason: str = STOPS) -> None:
        """Stop all modules, the last started first, each within a bound. Stopping twice is fine.

        ``reason`` is what the callers of running calls hear; if it is the usual one and a module has failed, that.
        """
        if reason == STOPS:
            reason = next((_how_failed(each) for each in self._modules if each.failure().done()), reason)
        self._unfed_inputs.stop()
        for module in reversed(self._modules[:]):
            await self.stop_module(module, reason)
        await self._skills.stop()

    async def stop_module(self, module: Module, reason: str, reasons: Mapping[str, str] | None = None) -> None:
        """Stop one of the running modules, within a bound. ``reasons`` are those of calls that have others, by id.
        The calls of one that has failed have failed."""
        failed = module.failure().done()
        await self._skills.remove(module, _how_failed(module) if failed else reason, reasons, failed=failed)
        await self._end(module)

    async def _end(self, module: Module) -> None:
        self._modules.remove(module)
        self._unfed_inputs.remove(module)
        began = asyncio.get_running_loop().time()
        try:
            await _end_within(module, "end its tasks", module.end_tasks(), began, _TASKS_BOUND_S)
            if type(module).stop is not Module.stop:  # a task for nothing would let others' events come first
                stopping = apart(module.stop(), name=f"{module.name}:stop")
                await _end_within(module, "stop", stopping, began, STOP_BOUND_S)
        finally:
            _disconnect(module)
            if module.failure().done() and module not in self._reported:
                module.log.error("a task of module %s failed", module.name, exc_info=module.failure().exception())
            self._reported.discard(module)

    def _connect(self, module: Module, topics: Mapping[str, str]) -> None:
        for spec in module.streams().values():
            stream: In | Out = getattr(module, spec.name)  # type: ignore[type-arg]
            if spec.name in topics:
                stream.connect(self._bus, topics[spec.name])
            elif isinstance(stream, Out):
                stream.silence()
            elif spec.required:
                raise UserError(f"stream {spec.name!r} of module {module.name!r} is required and has no topic")


async def _end_within(
    module: Module, what: str, work: Coroutine[Any, Any, None], began: float, bound_s: float
) -> None:
    """Wait for a part of a module's end until ``bound_s`` seconds after it ``began``; log what goes wrong."""
    left_s = began + bound_s - asyncio.get_running_loop().time()
    try:
        if not await ends_within(left_s, work):
            module.log.error("module %s did not %s within %g s", module.name, what, bound_s)
    except Exception:
        module.log.exception("module %s failed while it stopped", module.name)


def _disconnect(module: Module) -> None:
    for spec in module.streams().values():
        getattr(module, spec.name).disconnect()


def _failure_at_start(error: BaseException, name: str) -> Exception | None:
    """Return the failure of a module that an error at its start is, or None if it is to be passed on as it is."""
    if is_stray(error):
        return stray_cancellation(f"{name}:start")
    return error if isinstance(error, Exception) and not isinstance(error, UserError) else None


def _how_failed(module: Module) -> str:
    return f"module {module.name!r} failed: {_last_line(module.failure().exception())}"


def _last_line(error: BaseException | None) -> str:
    """Return the last line of a traceback."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
