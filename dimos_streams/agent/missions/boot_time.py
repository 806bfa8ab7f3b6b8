"""The time since something happened, however the machine's clock was set meanwhile: as long as the machine runs, the
time since its boot tells."""

from __future__ import annotations

from typing import Any

from dimos_streams import clock
from dimos_streams.common.process.run_owner import boot_id
from dimos_streams.operator.messages.agent import AgentEvent

_BOOT, _BOOT_S = "boot", "boot_s"


def since_boot() -> dict[str, Any]:
    """The machine's boot and the time since then, for the data of an event of this moment; empty in virtual time,
    whose clock nobody sets, and where the system does not say it."""
    boot = _boot()
    return {_BOOT: boot, _BOOT_S: clock.steady()} if boot else {}


def utime_of(event: AgentEvent) -> int:
    """The time of an event by the clock as it is set now, in µs since the Unix epoch; if the event is of another
    boot, or does not tell, as the clock was set then."""
    boot = _boot()
    if not boot or event.data.get(_BOOT) != boot or _BOOT_S not in event.data:
        return event.utime
    ago_s: float = clock.steady() - event.data[_BOOT_S]
    return clock.utime() - round(ago_s * 1e6)


def _boot() -> str:
    return "" if clock.is_virtual() else boot_id()
