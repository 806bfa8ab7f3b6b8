"""A run on one loop: for debugging, for tests, and in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from dimos_streams import clock
from dimos_streams.blueprint.classes import instantiate
from dimos_streams.blueprint.model import Blueprint
from dimos_streams.blueprint.wiring import deliveries
from dimos_streams.bus import Bus, create_bus
from dimos_streams.errors import ModuleFailedError, UserError, suggest
from dimos_streams.module import Module, Services
from dimos_streams.runtime.events import OnRunEvent, ProcessState, ProcessView, RunEvent, RunEventKind
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.runtime.neighbours import refuse_neighbours
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.plan import context_for, plan_run
from dimos_streams.tool_stream.gateway import OfferedSkill, SkillGateway

Attachment = Callable[[Bus], AbstractAsyncContextManager[object]]
"""A context beside the modules that has the bus while they run, a recorder for instance."""

_PROCESS = "main"
_LISTED_WITHIN_S = 5.0

_logger = logging.getLogger(__name__)


class InProcessRun:
    """A run with all modules of a blueprint on the running loop. With ``memq://`` nothing leaves the process."""

    def __init__(
        self,
        blueprint: Blueprint,
        options: RunOptions,
        on_event: OnRunEvent | None = None,
        *,
        attach: Sequence[Attachment] = (),
    ) -> None:
        """Contexts in ``attach`` are entered before the first module starts and left when the last has stopped."""
        self._plans = plan_run(blueprint)
        self._options = options
        self._on_event = on_event or (lambda event: None)
        self._services = Services()
        self._real_bus = create_bus(options.bus_url, deliveries(blueprint))
        self.bus: Bus = options.wrap_bus(self._real_bus, _PROCESS) if options.wrap_bus else self._real_bus
        self._host = ModuleHost(self.bus)
        self._attach = attach
        self._attached = contextlib.AsyncExitStack()
        self._state = "new"

    @property
    def gateway(self) -> SkillGateway | None:
        """The bridge of this run, or None if the blueprint has none."""
        return self._services.get(SkillGateway)  # type: ignore[type-abstract]

    def module(self, name: str) -> Module:
        """Return a running module. Raises ``UserError`` for an unknown name."""
        modules = {module.name: module for module in self._host.modules}
        if name not in modules:
            raise UserError(f"no module {name!r} runs{suggest(name, modules)}")
        return modules[name]

    async def start(self) -> None:
        """Start all modules in order, until their skills can be called.

        Raises ``UserError`` or ``ModuleFailedError``; what had started is stopped then.
        """
        await refuse_neighbours(self._options.bus_url, [plan.spec.name for plan in self._plans])
        self._state = "starting"
        try:
            for bus in dict.fromkeys((self._real_bus, self.bus)):
                await bus.open()
            for attachment in self._attach:
                await self._attached.enter_async_context(attachment(self.bus))
            for plan in self._plans:
                module = instantiate(plan.spec, context_for(self._options, self._services, plan))
                self._emit("starting", module.name)
                await self._host.start(module, plan.topics)
                self._emit("ready", module.name)
            await self._until_listed()
        except BaseException:
            await self.stop()
            raise
        self._state = "ready"

    async def wait(self) -> None:
        """Wait until a module fails. Raises ``ModuleFailedError``, and logs where it has failed."""
        try:
            await self._host.wait_for_failure()
        except ModuleFailedError as error:
            _logger.error("%s", error, exc_info=error.__cause__)
            raise

    async def stop(self) -> None:
        """Stop all modules in reverse order and close the bus. Stopping twice is fine."""
        if self._state not in ("new", "stopped"):
            self._emit("stopping", "")
            await self._host.stop()
            await asyncio.sleep(clock.SETTLED_AFTER_S)
            try:
                await self._attached.aclose()
            finally:
                for bus in dict.fromkeys((self.bus, self._real_bus)):
                    await bus.close()
            self._emit("stopped", "")
        self._state = "stopped"

    def processes(self) -> list[ProcessView]:
        """Return the one process."""
        names = tuple(module.name for module in self._host.modules)
        state: ProcessState = "ready" if self._state == "ready" else "stopped"
        return [ProcessView(label=_PROCESS, modules=names, pid=os.getpid(), state=state, restarts=0)]

    async def _until_listed(self) -> None:
        """Wait until the bridge knows all skills, so that they can be called at once."""
        gateway = self.gateway
        offering = {module.name for module in self._host.modules if module.offered_skills()}
        missing = offering
        try:
            async with asyncio.timeout(_LISTED_WITHIN_S):
                while gateway and (missing := offering - _modules_of(await gateway.skills())):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        except TimeoutError as error:
            names = ", ".join(sorted(missing))
            text = f"the bridge does not list the skills of {names} within {_LISTED_WITHIN_S:g} s"
            raise ModuleFailedError(text) from error

    def _emit(self, kind: RunEventKind, module: str) -> None:
        self._on_event(RunEvent(kind=kind, process=_PROCESS, module=module))


def _modules_of(skills: Sequence[OfferedSkill]) -> set[str]:
    """The modules that offer these skills, and those whose skills of the same names are shadowed."""
    return {offered.module for skill in skills for offered in (skill, *skill.shadowed)}
