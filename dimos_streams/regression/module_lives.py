"""Starts and stops the modules under test where the log says that they were stopped, and started again."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from dimos_streams.blueprint.classes import instantiate
from dimos_streams.errors import MessageError
from dimos_streams.messages.codec import decode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.module import RunContext
from dimos_streams.recording.format import LogEvent
from dimos_streams.regression.settings.given_settings import without_given
from dimos_streams.regression.settings.initial_settings import Assignments
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.runtime.plan import ModulePlan
from dimos_streams.tool_stream.hosting.settings_change import kept_assignments, restore_settings
from dimos_streams.tool_stream.liveness.heartbeat import STOPS, announces_end, head_of, stop_reason
from dimos_streams.tool_stream.liveness.module_view import ALIVE_S
from dimos_streams.tool_stream.protocol.channels import STATUS

ENDS_HERE = "the recording of its module ends here"
"""The reason with which calls end that go on where their module stops in the log, or the log ends."""


class _Speaker(NamedTuple):
    instance: str
    heard_utime: int


class ModuleLives:
    """The lives of the modules under test. A life ends with the heartbeat that announces it; the next begins with the
    first heartbeat of another instance. Of a process that was killed nothing is announced: its module goes on.

    As in a live run, only the instance that has the module's name speaks for it; others are heard when it has stopped
    or was silent for ``ALIVE_S``. A life begins with the settings that its heartbeat says were changed in an earlier
    one, but for those that are given for the replay.
    """

    def __init__(
        self,
        host: ModuleHost,
        plans: Sequence[ModulePlan],
        context: RunContext,
        ended: Collection[str],
        settings: Mapping[str, Assignments],
    ) -> None:
        """``ended`` are the calls that have ended in the log, as far as it was read: those of them that go on where
        a life ends do not end for its reason. ``settings`` are those that had been changed when the log begins, by
        module."""
        self._host = host
        self._settings = settings
        self._ended = ended
        self._late: dict[str, Mapping[str, str]] = {}
        """The reasons for calls that had ended when an instance stopped in the log, by instance."""
        self._plans = {plan.spec.name: plan for plan in plans}
        self._context = context
        self._speakers: dict[str, _Speaker] = {}
        """The instance that speaks for each module, as far as the log was read."""
        self._stopped: dict[str, str] = {}
        """The instance that stopped last, by module, as far as the log was read."""
        self._due: asyncio.Queue[ModuleStatus] = asyncio.Queue()  # as long as the log has changes at one instant

    def is_change(self, event: LogEvent) -> bool:
        """Return whether a life begins or ends with an event. Call this with every event, in order."""
        status = self._own_status(event)
        if status is None or not self._speaks(status, event.utime):
            return False
        if announces_end(status.health):
            begins_to_stop = status.module not in self._stopped
            self._stopped[status.module] = status.instance
            if begins_to_stop:
                self._late[status.instance] = dict.fromkeys(self._ended, ENDS_HERE)
            return begins_to_stop
        if self._stopped.get(status.module, status.instance) == status.instance:
            return False
        del self._stopped[status.module]
        return True

    def _speaks(self, status: ModuleStatus, utime: int) -> bool:
        speaker = self._speakers.get(status.module)
        if speaker is not None and speaker.instance != status.instance:
            is_there = utime - speaker.heard_utime < ALIVE_S * 1e6
            if is_there and self._stopped.get(status.module) != speaker.instance:
                return False
        self._speakers[status.module] = _Speaker(status.instance, utime)
        return True

    def take(self, event: LogEvent) -> bool:
        """Begin or end a life with a change that is due, in the next turn of the loop; return False for an event that
        is about none."""
        status = self._own_status(event)
        if status is None:
            return False
        self._due.put_nowait(status)
        return True

    def _own_status(self, event: LogEvent) -> ModuleStatus | None:
        if event.channel != STATUS:
            return None
        try:
            is_own = head_of(event.data, STATUS).module in self._plans
            return decode(ModuleStatus, event.data, STATUS) if is_own else None
        except MessageError:  # damaged; whoever reads heartbeats skips it
            return None

    async def start(self) -> None:
        """Start all modules. Raises what ``ModuleHost.start`` raises."""
        for name in self._plans:
            await self._start(name, self._settings.get(name, {}))

    async def run(self) -> None:
        """Begin and end lives until cancelled. Raises ``ModuleFailedError`` when a module fails."""
        while True:
            due = asyncio.ensure_future(self._due.get())
            failing = asyncio.ensure_future(self._host.wait_for_failure())
            try:
                await asyncio.wait([due, failing], return_when=asyncio.FIRST_COMPLETED)
                if failing.done():
                    failing.result()
                status = due.result()
            finally:
                due.cancel()
                failing.cancel()
            await self._apply(status)

    async def _apply(self, status: ModuleStatus) -> None:
        if not announces_end(status.health):
            await self._start(status.module, kept_assignments(status.state_json))
            return
        for module in self._host.modules:
            if module.name == status.module:
                reason = stop_reason(status.health) or STOPS
                await self._host.stop_module(module, reason, self._late.pop(status.instance, None))

    async def _start(self, name: str, settings: Assignments) -> None:
        plan = self._plans[name]
        module = instantiate(plan.spec, self._context)
        restore_settings(module, without_given(settings, plan.spec))
        await self._host.start(module, plan.topics)
