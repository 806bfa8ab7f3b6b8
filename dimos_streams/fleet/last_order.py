"""The last order of a hub to stop a robot or to cancel all calls. Commands that were given before it begin no call.

Orders that stop overtake other commands, at the hub and on the way. So a command to begin a call may arrive after an
order that was given later, and must not be carried out any more.
"""

from __future__ import annotations

from collections.abc import Callable

from dimos_streams import clock
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.fleet.commands import Command
from dimos_streams.fleet.paths import bare_path
from dimos_streams.fleet.protocol import MAX_EXPIRY_S, CommandId
from dimos_streams.tool_stream.overtaken import OrderKind, overtaken

_ORDERS: dict[str, OrderKind] = {"/robots/stop": "stop", "/calls/cancel": "cancel"}


class OrderNote(FrozenModel):
    """The record of an order."""

    id: CommandId
    kind: OrderKind
    at: float
    """Time at which it came, on ``clock.steady``."""
    utime: int
    """The same, µs since the Unix epoch."""


def age_s(at: float, utime: int) -> float:
    """The age of what was noted at that time on ``clock.steady``, or in µs since the Unix epoch: the smaller of both.
    The steady clock begins anew with the machine, and the wall clock may have been set."""
    ages = (clock.steady() - at, (clock.utime() - utime) / 1e6)
    return min((age for age in ages if age >= 0), default=0.0)


class LastOrder:
    """The last order of a hub that ends what was asked for before it, whichever part of the robot it is about."""

    def __init__(self, keep: Callable[[OrderNote], None]) -> None:
        """``keep`` is called with each order that is noted, so that ``restore`` gets it after a restart."""
        self._keep = keep
        self._noted: OrderNote | None = None

    def restore(self, note: OrderNote) -> None:
        """Go on with an order that was noted before a restart, unless a later one is known."""
        if self._noted is None or note.id > self._noted.id:
            self._noted = note.model_copy(update={"at": clock.steady() - age_s(note.at, note.utime)})

    def note(self, command: Command) -> None:
        """Note a command that is about to be carried out, if it is such an order; one that comes late, after a newer
        one, changes nothing."""
        kind = _ORDERS.get(bare_path(command.path))
        if kind is None or command.method != "POST" or (kind == "cancel" and _names_calls(command)):
            return
        last = self._last()
        if last is None or command.id > last.id:
            self._noted = OrderNote(id=command.id, kind=kind, at=clock.steady(), utime=clock.utime())
            self._keep(self._noted)

    def against(self, command: Command) -> str:
        """The reason why a command to begin a call comes too late; empty if no order has overtaken it."""
        last = self._last()
        if last is None or command.id > last.id:
            return ""
        why = overtaken((command.body or {}).get("skill"), last.kind)
        # Nothing tells a call that is late from one of a hub that numbers its commands anew.
        left_s = last.at + MAX_EXPIRY_S - clock.steady()
        return f"{why}; if the hub's database was put back from a copy since, its calls begin again in {left_s:.0f} s"

    def _last(self) -> OrderNote | None:
        """The order that counts now, if there is one.

        It counts for as long as an older command can be valid: a hub that has lost its database counts anew.
        """
        noted = self._noted
        return None if noted is None or clock.steady() > noted.at + MAX_EXPIRY_S else noted


def _names_calls(command: Command) -> bool:
    """Return whether a command to cancel is about some calls only, which it names."""
    return (command.body or {}).get("calls") is not None
