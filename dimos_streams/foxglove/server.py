"""The server for viewers: the SDK's, and the door before it."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

from dimos_streams.common.limited_log import LimitedRecords
from dimos_streams.common.process.threads import see_out
from dimos_streams.errors import UserError
from dimos_streams.foxglove.channels import Channels
from dimos_streams.foxglove.door.admission import AdmissionRules
from dimos_streams.foxglove.door.arrivals import Arrivals
from dimos_streams.foxglove.door.viewer_door import ViewerDoor
from dimos_streams.foxglove.orders import Operator
from dimos_streams.foxglove.services import services_of

if TYPE_CHECKING:
    from foxglove.websocket import WebSocketServer

_BACKLOG = 128
"""The largest number of messages that wait for a viewer; of more the oldest are dropped."""
_COMPLAINS = "foxglove.websocket.connected_client"
"""The SDK's logger of what viewers say wrong, of which each line has a viewer's own words."""
_LIMITED = LimitedRecords(alike=lambda record: record.name)


class ViewerServer:
    """Serves viewers from ``open`` to ``close``."""

    def __init__(
        self, name: str, rules: AdmissionRules, operator: Operator | None, on_change: Callable[[], None]
    ) -> None:
        """``name`` is the server's name for viewers. Without an ``operator`` they may only watch. ``on_change`` is
        called when a channel is watched that was not, or the other way round."""
        self._name = name
        self._rules = rules
        self._operator = operator
        self._on_change = on_change
        self._arrivals = Arrivals()
        self._sdk: WebSocketServer | None = None
        self._door: ViewerDoor | None = None

    def begin(self) -> Channels:
        """Start the SDK's server, to which nobody gets yet. Raises ``UserError`` without the extra ``foxglove``."""
        try:
            import foxglove
            from foxglove.websocket import Capability
        except ImportError as error:
            raise UserError("Foxglove needs foxglove-sdk: pip install 'dimos-streams[foxglove]'") from error
        logging.getLogger(_COMPLAINS).addFilter(_LIMITED)
        context = foxglove.Context()
        channels = Channels(context, self._on_change, self._keeps_up)
        services = [] if self._operator is None else services_of(self._operator, self._arrivals)

        def started(host: str) -> WebSocketServer:
            return foxglove.start_server(
                name=self._name,
                host=host,
                port=0,
                capabilities=[Capability.Services] if services else [],
                supported_encodings=["json"],
                services=services,
                server_listener=channels,  # type: ignore[arg-type]  # it has those of the methods that are called
                context=context,
                message_backlog_size=_BACKLOG,
            )

        self._host = _hidden_address()
        try:
            self._sdk = started(self._host)
        except RuntimeError:  # a system where one address of this machine is as good as none
            self._host = "127.0.0.1"
            self._sdk = started(self._host)
        return channels

    async def open(self, host: str, port: int, *, port_is_kept: bool = False) -> int:
        """Let viewers in and return the port; ``port_is_kept`` is true if a ``KeptPort`` keeps it. Raises
        ``UserError`` for an address that can't be had."""
        assert self._sdk is not None
        self._door = ViewerDoor(self._rules, (self._host, self._sdk.port), self._arrivals)
        try:
            return await self._door.open(host, port, port_is_kept=port_is_kept)
        except OSError as error:
            raise UserError(
                f"viewers can't be served on {host}:{port}: {error.strerror or error}; name another address with"
                " --foxglove HOST:PORT, or the settings `host` and `port`"
            ) from error

    def _keeps_up(self) -> bool:
        return self._door is None or self._door.keeps_up

    async def close(self) -> None:
        """End all connections. Twice is fine."""
        sdk, self._sdk = self._sdk, None
        try:
            if self._door is not None:
                await self._door.close()
        finally:
            if sdk is not None:
                await see_out(sdk.stop)


def _hidden_address() -> str:
    """Return one of the sixteen million addresses of this machine at random: the SDK asks nobody for a name, so
    somebody who guesses ports must not find it."""
    return f"127.{secrets.randbelow(255) + 1}.{secrets.randbelow(256)}.{secrets.randbelow(254) + 1}"
