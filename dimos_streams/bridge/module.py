"""The bridge as a module of a blueprint."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dimos_streams import clock
from dimos_streams.bridge.config import BridgeConfig
from dimos_streams.bridge.endpoint import BridgeEndpoint
from dimos_streams.bridge.health_log import HealthLog
from dimos_streams.bus import Bus
from dimos_streams.common.process.disk import at_home, trouble_with
from dimos_streams.common.tasks import OwnedTasks
from dimos_streams.errors import DimosStreamsError
from dimos_streams.module import ConfigFault, Module, ModuleConfig, RunContext
from dimos_streams.operator.robot_orders import ORDERS
from dimos_streams.tool_stream.gateway import SkillGateway
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory

if TYPE_CHECKING:
    from dimos_streams.bridge.calls.broker import Broker
    from dimos_streams.bridge.live.topics import LiveTopics
    from dimos_streams.bridge.monitor.monitor import Monitor
    from dimos_streams.journal.broadcast import JournalBroadcast
    from dimos_streams.journal.journal import Journal

S = TypeVar("S")

_MAINTENANCE_S = 5.0


class Bridge(Module):
    """Takes tool streams off the bus, journals them, serves them over HTTP, and takes calls in.

    Needs the run's ``Bus`` and ``ModuleDirectory`` among the services of its process, and offers a ``SkillGateway``
    there.
    """

    late_imports = (
        *("jsonschema", "dimos_streams.tool_stream.arguments.bounded_validator"),
        *("dimos_streams.bridge.app", "dimos_streams.serving.server.server"),
        # Uvicorn, with its start, and Starlette, with the first request.
        *("uvicorn.lifespan.off", "anyio._backends._asyncio"),
    )

    sees_channels = True
    one_per_bus = True

    config: BridgeConfig
    if TYPE_CHECKING:  # parts of a bridge that runs: code that reads a blueprint needs none
        journal: Journal
        broadcast: JournalBroadcast
        broker: Broker
        monitor: Monitor
        live: LiveTopics

    def __init__(
        self,
        config: ModuleConfig | Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        context: RunContext | None = None,
    ) -> None:
        super().__init__(config, name=name, context=context)
        self._disk = ""
        self.endpoint = BridgeEndpoint(self, self.config, disk=lambda: self._disk, unwell=self._unwell)
        self._to_undo = contextlib.AsyncExitStack()

    @classmethod
    def listens_at(cls, config: BridgeConfig) -> tuple[str, int] | None:
        """See ``Module``."""
        return None if config.http is False or not config.port else (config.host, config.port)

    @classmethod
    def possible_faults(cls, config: BridgeConfig) -> Iterator[ConfigFault]:
        """See ``Module``: files without which nothing is shipped to the fleet hub; they may be written later."""
        if config.hub is not None:
            yield from (ConfigFault(("hub", name), text) for name, text in config.hub.missing_files().items())

    @property
    def url(self) -> str:
        """The URL at which HTTP is served; empty if it is not served."""
        return self.endpoint.url

    async def start(self) -> None:
        """See ``Module``. Raises ``UserError`` if the port is taken, or a token is missing."""
        bus = self._require(Bus)  # type: ignore[type-abstract]
        directory = self._require(ModuleDirectory)
        directory.hear_all()
        # The first call's arguments are checked with it; importing it then would hold every stream up.
        await self.run_blocking(importlib.import_module, "jsonschema")
        serves = self.config.http if self.config.http is not None else not clock.is_virtual()
        if serves:
            self.endpoint.bind()
            self._to_undo.callback(self.endpoint.release)
        await self._open_journal()
        self._to_undo.push_async_callback(self.endpoint.finish_link)
        self.broker = self._make_broker(bus, directory)
        self._to_undo.push_async_callback(self.broker.stop)
        await self.broker.start()
        self._report_health()
        self._report_orders()
        self.broker.stops.ordered.add(self._report_orders)
        self.context.services.offer(SkillGateway, self.broker)  # type: ignore[type-abstract]
        self._to_undo.callback(self.context.services.withdraw, SkillGateway)
        self._to_undo.push_async_callback(self.endpoint.stop)
        self._begin_watching(bus, directory)
        # Readers are ended first of all: a stream that waits for events would hold the server up.
        self._to_undo.callback(self.broadcast.close)
        if not clock.is_virtual():
            await self.endpoint.serve(self.broker, self.broadcast, self.monitor, self.live)

    async def _open_journal(self) -> None:
        from dimos_streams.journal.broadcast import JournalBroadcast
        from dimos_streams.journal.journal import Journal

        self.journal = Journal(self._journal_path(), self.config.journal_limits)
        self._to_undo.callback(self.journal.close)
        self.journal.open()
        await self._look_at_disk()
        self.broadcast = JournalBroadcast(self.journal)

    def _begin_watching(self, bus: Bus, directory: ModuleDirectory) -> None:
        from dimos_streams.bridge.live.kinds import topic_infos
        from dimos_streams.bridge.live.topics import LiveTopics
        from dimos_streams.bridge.monitor.monitor import Monitor

        self.monitor = Monitor(self.broker, self.broadcast)
        self._to_undo.push_async_callback(self.monitor.stop)
        self.monitor.start()
        channels = self.context.channels
        self.live = LiveTopics(bus, topic_infos(channels, channels.values()))
        self._to_undo.callback(self.live.stop)
        watching = OwnedTasks()
        self._to_undo.push_async_callback(watching.end)
        watching.spawn(HealthLog(directory).run(), name="health of modules")

    def _make_broker(self, bus: Bus, directory: ModuleDirectory) -> Broker:
        from dimos_streams.bridge.calls.broker import Broker

        # A bridge that starts again must not make the ids of calls that it made before.
        seed = f"{self.random.random()}/{self.journal.last_offset}/{clock.utime()}"
        return Broker(
            bus,
            directory,
            self.broadcast,
            random=random.Random(seed),
            name=self.name,
            beside=None if self.journal.tail.is_anothers else self._journal_path(),
            agents=self.context.agents,
            mcp_approval=self.config.mcp_approval,
        )

    def _require(self, kind: type[S]) -> S:
        service = self.context.services.get(kind)
        if service is None:
            raise DimosStreamsError(f"module {self.name!r}: nobody offers a {kind.__name__} in this process")
        return service

    async def run(self) -> None:
        """See ``Module``: keeps the journal within its bounds."""
        if self.url and clock.is_virtual():
            self._to_undo.push_async_callback(self.endpoint.cut)
            self._to_undo.callback(self.broadcast.close)
            self._to_undo.callback(self.live.stop)
            await self.endpoint.serve_watchers(self.broker, self.broadcast, self.live)
        while True:
            await asyncio.sleep(_MAINTENANCE_S)
            self.journal.trim()
            self.journal.look_for_file()
            await self._tend_disk()
            self._report_health()

    async def _tend_disk(self) -> None:
        try:
            await self.journal.checkpoint(self.run_blocking)
            await self._look_at_disk()
        except OSError as error:  # there is no thread for it: it comes round again
            self._disk = f"it can't be looked at: {error.strerror}"

    async def _look_at_disk(self) -> None:
        run_dir = None if clock.is_virtual() else self.context.run_dir
        self._disk = "" if run_dir is None else await self.run_blocking(trouble_with, run_dir)
        if self.journal.state != "ok" and not self._disk:
            await self.journal.homing.attempt(self.run_blocking)

    def _report_health(self) -> None:
        """Report what is not well as the module's health."""
        self.health = "; ".join(self._unwell()) or "ok"

    def _report_orders(self) -> None:
        """Report operators' orders to robots, so that agents hear of each. Before the first nothing is to be said."""
        orders = self.broker.stops.orders
        self.report_state({ORDERS: dict(orders)} if orders else {})

    def _unwell(self) -> list[str]:
        said = [] if self.journal.state == "ok" else [f"journal in {self.journal.state}"]
        said += [f"disk: {self._disk}"] if self._disk else []
        said += ["it does not even hear itself on the bus"] if self.broker.is_deaf else []
        said += [note] if (note := self.broker.receiver.refusal_note()) else []
        return said

    async def stop(self) -> None:
        """See ``Module``. Ends within a second, however many streams are open."""
        try:
            if clock.is_virtual():
                await asyncio.sleep(clock.SETTLED_AFTER_S)
        finally:
            await self._to_undo.aclose()

    def _journal_path(self) -> Path | None:
        if self.config.journal is not None:
            return at_home(self.config.journal)
        if self.context.run_dir is None or clock.is_virtual():
            return None
        from dimos_streams.journal.journal import JOURNAL_FILE

        return self.context.run_dir / JOURNAL_FILE
