"""The replacement of a process by another, which imports its code and is checked while the old one goes on."""

from __future__ import annotations

import asyncio

from dimos_streams import clock
from dimos_streams.errors import ModuleFailedError, UserError
from dimos_streams.runtime.live.slots import Slot
from dimos_streams.runtime.liveness import BEAT_S
from dimos_streams.runtime.processes.process import SupervisedProcess
from dimos_streams.runtime.processes.reports import Report

_PREPARES_WITHIN_S = 30.0
"""Maximum time of a preparation, in seconds; what it waits for a processor does not count."""


async def prepare(slot: Slot, successor: SupervisedProcess) -> None:
    """Have a successor import its code and wait. Raises ``UserError`` with what is broken; the successor has ended
    then."""
    prepared = slot.prepared = asyncio.get_running_loop().create_future()
    slot.successor = successor
    try:
        await successor.start()
        began = clock.monotonic()
        while not prepared.done():
            await asyncio.wait([prepared], timeout=BEAT_S)
            if not prepared.done() and clock.monotonic() - began - successor.waited_s > _PREPARES_WITHIN_S:
                raise TimeoutError
        if why := prepared.result():
            raise UserError(why)
    except BaseException as error:
        slot.successor = None
        successor.kill()
        if isinstance(error, TimeoutError):
            why = f"the code of process {slot.plan.label!r} was not imported within {_PREPARES_WITHIN_S:g} s"
            raise UserError(why) from error
        if isinstance(error, OSError):
            raise ModuleFailedError(f"process {slot.plan.label!r} could not be started: {error!r}") from error
        raise


def hear(slot: Slot, report: Report) -> None:
    """Note what a successor reports of its preparation."""
    if slot.prepared is None or slot.prepared.done():
        return
    if report["kind"] == "prepared":
        slot.prepared.set_result("")
    elif report["kind"] == "failed":
        slot.prepared.set_result(report["text"])


def ended(slot: Slot, why: str) -> None:
    """Note that a successor has ended before it was prepared."""
    if slot.prepared is not None and not slot.prepared.done():
        slot.prepared.set_result(why)


def give_up(slot: Slot, why: str) -> None:
    """Have a replacement that is under way end, if there is one: its successor begins no more."""
    ended(slot, why)
    slot.settle(why)


async def begin(slot: Slot, old: SupervisedProcess | None, bound_s: float, reason: str) -> None:
    """Let the successor, which has the place already, begin once the old process has ended, unless it is given up
    meanwhile.

    Raises ``ModuleFailedError`` if it does not become ready.
    """
    new, settled = slot.process, asyncio.get_running_loop().create_future()
    slot.settled = settled
    assert new is not None
    if slot.restarter is not None:
        await asyncio.wait([slot.restarter])  # what it forks at this moment can be ended only then
    if old is not None:
        await old.end(bound_s, reason)
    if not settled.done():
        slot.hear(clock.monotonic())
        new.begin(slot.live)  # all that the old one has taken has been reported
    if why := await settled:
        raise ModuleFailedError(why)
