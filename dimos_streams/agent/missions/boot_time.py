"""The time since something happened, however the machine's clock was set meanwhile: as long as the machine runs, the
time since its boot tells."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from dimos_streams import clock
from dimos_streams.common.process.run_owner import boot_id


class SinceBoot(TypedDict):
    """The moment of an event by the machine's boot, in its data; empty in virtual time, whose clock nobody sets, and
    where the system does not say it."""

    boot: NotRequired[str]
    """The id of the boot."""
    boot_s: NotRequired[Annotated[float, Field(ge=0, le=1e12)]]
    """The time since then."""


def since_boot() -> SinceBoot:
    """The present moment."""
    boot = _boot()
    return {"boot": boot, "boot_s": clock.steady()} if boot else {}


def utime_now(utime: int, moment: SinceBoot) -> int:
    """The time of an event by the clock as it is set now, in µs since the Unix epoch; if the event is of another
    boot, or does not tell, as the clock was set then, ``utime``."""
    boot, boot_s = _boot(), moment.get("boot_s")
    if not boot or moment.get("boot") != boot or boot_s is None:
        return utime
    return clock.utime() - round((clock.steady() - boot_s) * 1e6)


def _boot() -> str:
    return "" if clock.is_virtual() else boot_id()
