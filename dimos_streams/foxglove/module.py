"""The module that shows a run in Foxglove, and lets its viewers give orders."""

from __future__ import annotations

import contextlib
import random
from collections import Counter

from pydantic import Field

from dimos_streams import clock
from dimos_streams.bus import Bus
from dimos_streams.client.http_gateway import HttpGateway
from dimos_streams.common.process.loopback import is_loopback
from dimos_streams.errors import DimosStreamsError, MessageError, UserError
from dimos_streams.foxglove.address import DEFAULT_PORT, url_of
from dimos_streams.foxglove.channels import Channels
from dimos_streams.foxglove.conversion.message_views import MessageViews
from dimos_streams.foxglove.door.admission import AdmissionRules
from dimos_streams.foxglove.feed import ChannelFeed
from dimos_streams.foxglove.orders import Operator
from dimos_streams.foxglove.server import ViewerServer
from dimos_streams.messages.codec import split_channel
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.tool_stream.liveness.attention import Attention
from dimos_streams.tool_stream.protocol.channels import OF_CALLS


class FoxgloveConfig(ModuleConfig):
    """Settings for the viewers' address, and for what viewers may do."""

    host: str = "127.0.0.1"
    """The address to serve on. Anything but loopback needs a token."""
    port: int = Field(DEFAULT_PORT, ge=0, le=65535)
    """The port to serve on; 0 takes any free one."""
    services: bool = True
    """Whether viewers may pause, resume, stop, release, approve and reject."""
    origins: tuple[str, ...] = ()
    """The pages that may connect besides Foxglove's own, as `https://HOST` or `http://HOST:PORT`."""


class FoxgloveServer(Module):
    """A server that shows viewers, by Foxglove's protocol, what the run's modules publish, its calls and their
    events. What nobody subscribes to is not listened to."""

    config: FoxgloveConfig
    packages = ("foxglove",)
    sees_channels = True
    port = 0
    """The port that is served; for port 0 in the config, the one that was free."""

    @classmethod
    def listens_at(cls, config: FoxgloveConfig) -> tuple[str, int] | None:
        """See ``Module``."""
        return (config.host, config.port) if config.port else None

    async def start(self) -> None:
        """Serve, but not in virtual time, which no viewer keeps. Raises ``UserError`` for an address that can't be
        had, and for one that others reach where there is no token."""
        self._feeds: list[ChannelFeed] = []
        self._to_undo = contextlib.AsyncExitStack()
        if clock.is_virtual():
            self.log.info("nothing is shown in virtual time")
            return
        config = self.config
        if self.context.token is None and not is_loopback(config.host):
            raise UserError(
                f"module {self.name!r}: serving viewers on {config.host!r}, which others reach, needs a token:"
                " set --token or DIMOS_STREAMS_TOKEN"
            )
        rules = AdmissionRules(self.context.token, frozenset(config.origins))
        operator = self._operator() if config.services else None
        server = ViewerServer(self.name, rules, operator, self._update)
        self._to_undo.push_async_callback(server.close)
        if operator is not None:
            # First of all: an order that waits for its answer would keep a thread of the SDK, and so the process.
            self._to_undo.push_async_callback(operator.close)
        self._show(server.begin())
        self.port = await server.open(config.host, config.port, port_is_kept=self.context.port_is_kept)
        self.log.info("viewers are served on %s", url_of(config.host, self.port))

    async def stop(self) -> None:
        """See ``Module``."""
        try:
            await self._to_undo.aclose()
        finally:
            for feed in self._feeds:
                feed.close()

    def _operator(self) -> Operator:
        rng = random.Random(self.random.random())
        gateway = HttpGateway(self.context.bridge_url, rng=rng, token=self.context.token)
        attention = Attention()
        attention.start()
        self._to_undo.callback(attention.stop)
        return Operator(gateway, self.name, lambda: attention.outdated_s)

    def _show(self, channels: Channels) -> None:
        """Advertise all channels."""
        bus = self.context.services.get(Bus)  # type: ignore[type-abstract]
        if bus is None:
            raise DimosStreamsError(f"module {self.name!r}: nobody offers a Bus in this process")
        published = self.context.channels
        views = MessageViews(published.values())
        types = Counter(split_channel(channel)[0] for channel in published)
        for channel in (*published, *OF_CALLS):
            several = types[split_channel(channel)[0]] > 1
            try:
                self._feeds.append(ChannelFeed(bus, channel, channels, views, several=several))
            except MessageError as error:
                self.log.warning("not shown: %s", error)
        self._update()

    def _update(self) -> None:
        for feed in self._feeds:
            feed.update()
