"""The last order of a hub to stop or to cancel all, which commands to begin older calls are not to survive.

What stops a robot goes first, at the hub and on the way, so a call that the hub had taken before may arrive after it.
Nobody means that one to begin any more.
"""

from __future__ import annotations

from dataclasses import dataclass

from dimos_streams import clock
from dimos_streams.fleet.commands import Command
from dimos_streams.fleet.paths import bare_path
from dimos_streams.fleet.protocol import MAX_EXPIRY_S, CommandId
from dimos_streams.tool_stream.overtaken import OrderKind, overtaken

_ORDERS: dict[str, OrderKind] = {"/robots/stop": "stop", "/calls/cancel": "cancel"}


@dataclass(frozen=True, slots=True)
class _Noted:
    id: CommandId
    kind: OrderKind
    at: float
    """Time at which it came, on ``clock.steady``."""


class LastOrder:
    """The last order of a hub that ends what was asked for before it, whichever part of the robot it is about."""

    def __init__(self) -> None:
        self._noted: _Noted | None = None

    def note(self, command: Command) -> None:
        """Note a command that is about to be carried out, if it is such an order; one that comes late, after a newer
        one, changes nothing."""
        kind = _ORDERS.get(bare_path(command.path))
        if kind is None or command.method != "POST":
            return
        last = self._last()
        if last is None or command.id > last.id:
            self._noted = _Noted(command.id, kind, clock.steady())

    def against(self, command: Command) -> str:
        """The reason why a command to begin a call comes too late; empty if no order has overtaken it."""
        last = self._last()
        if last is None or command.id > last.id:
            return ""
        return overtaken((command.body or {}).get("skill"), last.kind)

    def _last(self) -> _Noted | None:
        """The order that counts now, if there is one.

        It counts for as long as an older command can be valid: a hub that has lost its database counts anew.
        """
        noted = self._noted
        return None if noted is None or clock.steady() > noted.at + MAX_EXPIRY_S else noted
