"""The time since something happened, however the machine's clock was set meanwhile: as long as the machine runs, the
time since its boot tells."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from dimos_streams import clock
from dimos_streams.common.process.run_owner import boot_id


class SinceBoot(TypedDict):
    """A moment by the machine's boot, beside its time by the wall clock; empty in virtual time, whose clock nobody
    sets, and where the system does not say it."""

    boot: NotRequired[str]
    """The id of the boot."""
    boot_s: NotRequired[Annotated[float, Field(ge=0, le=1e12)]]
    """The time since then."""


def boot() -> str:
    """The id of the machine's boot; empty in virtual time, and where the system does not say it."""
    return "" if clock.is_virtual() else boot_id()


def since_boot(after_s: float = 0.0) -> SinceBoot:
    """The moment that is ``after_s`` seconds after the present one."""
    id = boot()
    return {"boot": id, "boot_s": clock.steady() + after_s} if id else {}


def utime_now(utime: int, moment: SinceBoot) -> int:
    """The time of a moment by the clock as it is set now, in µs since the Unix epoch; if the moment is of another
    boot, or does not tell, as the clock was set then, ``utime``."""
    id, boot_s = boot(), moment.get("boot_s")
    if not id or moment.get("boot") != id or boot_s is None:
        return utime
    return clock.utime() - round((clock.steady() - boot_s) * 1e6)
