"""The bridge on the network: its HTTP server, and its link to a fleet hub, which uses the same app."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from dimos_streams import clock
from dimos_streams.bridge.config import BridgeConfig
from dimos_streams.errors import UserError
from dimos_streams.module import Module
from dimos_streams.serving.close_codes import GOING_AWAY, SERVICE_RESTART

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp

    from dimos_streams.bridge.calls.broker import Broker
    from dimos_streams.bridge.fleet.link import HubLink
    from dimos_streams.bridge.fleet.settings import HubLinkSettings
    from dimos_streams.bridge.live.topics import LiveTopics
    from dimos_streams.bridge.monitor.monitor import Monitor
    from dimos_streams.journal.broadcast import JournalBroadcast
    from dimos_streams.serving.server.server import HttpServer

_LONG_S = 300.0
"""Ping period and client timeout, in seconds, in virtual time, where a timeout of wall time is many times as long."""
_VIRTUAL = "this run is in virtual time: a function of its seed and inputs, it can be watched but not be commanded"


class BridgeEndpoint:
    """Serves a bridge to its clients, once it is bound, and to the fleet hub that its config names.

    What needs the web framework is imported when it is used: not every bridge serves.
    """

    def __init__(
        self, module: Module, config: BridgeConfig, *, disk: Callable[[], str], unwell: Callable[[], list[str]]
    ) -> None:
        """``disk`` returns the reason why the run's files can't be written, empty if they can; ``unwell`` returns all
        that is not well."""
        self._module = module
        self._context = module.context
        self._config = config
        self._disk = disk
        self._unwell = unwell
        self.server: HttpServer | None = None
        """The HTTP server; None before it is bound."""
        self._link: HubLink | None = None

    @property
    def url(self) -> str:
        """The URL at which HTTP is served; empty if it is not served."""
        return self.server.url if self.server is not None else ""

    def bind(self) -> None:
        """Take the port. Raises ``UserError`` if somebody has it, or a token is missing."""
        from dimos_streams.common.process.loopback import is_loopback
        from dimos_streams.serving.server import protocol as http_protocol
        from dimos_streams.serving.server.server import HttpServer

        config = self._config
        if self._token() is None and not is_loopback(config.host):
            raise UserError(
                f"module {self._module.name!r}: serving on {config.host!r}, which others reach, needs a token:"
                " set --token or DIMOS_STREAMS_TOKEN"
            )
        server = HttpServer(
            config.host,
            config.port,
            ping_s=config.ping_s,
            connections=http_protocol.MAX_CONNECTIONS,
            port_is_kept=self._context.port_is_kept,
        )
        server.bind()
        self.server = server

    def release(self) -> None:
        """Give the port back."""
        if self.server is not None:
            self.server.release()

    async def serve(self, broker: Broker, broadcast: JournalBroadcast, monitor: Monitor, live: LiveTopics) -> None:
        """Serve clients if it is bound, ship to the fleet hub that there is, and take its commands."""
        if self.server is None and self._config.hub is None:
            return
        from dimos_streams.bridge.app import create_app
        from dimos_streams.serving.server.connection_ends import ConnectionEnds

        server = self.server
        app = create_app(
            broker,
            broadcast,
            monitor=monitor,
            live=live,
            ping_s=self._config.ping_s,
            connection_ends=ConnectionEnds(
                self._config.send_timeout_s, None if server is None else server.abort, self._close_code
            ),
            run_dir=self._context.run_dir,
            disk=self._disk,
            fleet_hub=lambda: None if self._link is None else self._link.view(),
        )
        if server is not None:
            await self._serve(server, app, broker)
            self._module.log.info("serving on %s", server.url)
        if self._config.hub is not None:
            self._begin_link(self._config.hub, app, broker, broadcast)

    async def serve_watchers(self, broker: Broker, broadcast: JournalBroadcast, live: LiveTopics) -> None:
        """Serve what can be read, without any effect on a run in virtual time: no time passes, nothing gets on the
        bus. For an endpoint that is bound."""
        from dimos_streams.bridge.app import create_app
        from dimos_streams.bridge.live.routes import PATH
        from dimos_streams.serving.server.connection_ends import ConnectionEnds
        from dimos_streams.serving.server.watch_only import WatchOnly

        assert self.server is not None, "it is bound"
        ends = ConnectionEnds(_LONG_S, self.server.abort)
        app = create_app(broker, broadcast, live=live, ping_s=_LONG_S, connection_ends=ends)
        await self._serve(self.server, WatchOnly(app, _VIRTUAL, [PATH]), broker)
        self._module.log.info("serving on %s, for watching only", self.server.url)

    async def stop(self) -> None:
        """Take no requests any more, of clients or of the fleet hub."""
        try:
            if self._link is not None:
                await self._link.stop()
        finally:
            if self.server is not None and not clock.is_virtual():
                await self.server.stop()

    async def cut(self) -> None:
        """End all connections at once."""
        if self.server is not None:
            await self.server.cut()

    async def finish_link(self) -> None:
        """Ship to the fleet hub what is left, as far as there is time."""
        if self._link is not None:
            await self._link.finish()

    async def _serve(self, server: HttpServer, app: ASGIApp, broker: Broker) -> None:
        from dimos_streams.bridge.app import guarded

        config = self._config
        shown = guarded(
            app,
            host=config.host,
            token=self._token(),
            allowed_hosts=config.allowed_hosts,
            outdated_s=lambda: broker.directory.outdated_s,
        )
        await server.serve(shown)

    def _begin_link(self, hub: HubLinkSettings, app: FastAPI, broker: Broker, broadcast: JournalBroadcast) -> None:
        from dimos_streams.bridge.fleet.link import HubLink

        # Robots of one seed must not come back all at once.
        rng = random.Random(f"{self._module.random.random()}/{broadcast.journal.identity.journal_id}")
        self._link = HubLink(hub, app, broker, broadcast, rng=rng, notes=self._unwell)
        self._link.start()

    def _close_code(self) -> int:
        return SERVICE_RESTART if self._context.is_replaced() else GOING_AWAY

    def _token(self) -> str | None:
        own = self._config.token
        return own.get_secret_value() if own is not None else self._context.token
