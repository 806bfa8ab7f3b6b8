"""Gateways to a bridge, for commands that follow its events or begin calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from dimos_streams.cli.bridge_client.connection.address import BridgeAddress
from dimos_streams.errors import NoAnswerError, NoRunError, SkillError, SkillUnavailableError

if TYPE_CHECKING:
    from dimos_streams.client.http_gateway import HttpGateway
    from dimos_streams.runtime.registry import RunRecord

T = TypeVar("T")


@asynccontextmanager
async def open_gateway(address: BridgeAddress, *, ends_with_run: bool = False) -> AsyncIterator[HttpGateway]:
    """Open a gateway to a bridge. Readers of events wait for it to come back, but for that of a run of this machine
    that has ended if it ``ends_with_run``: then they get a ``NoRunError``.

    Nothing is asked beforehand, so that a command costs no more than its own requests. When one of them fails, a
    further one shows whether there is no bridge; then ``BridgeUnreachableError`` is raised instead.
    """
    from dimos_streams.cli.bridge_client.answers import HEALTH

    gateway = address.gateway(partial(_gone, address.run if ends_with_run else None))
    try:
        yield gateway
    except SkillError as error:
        if type(error) in (SkillError, SkillUnavailableError, NoAnswerError):
            await address.get("/healthz", HEALTH)
        raise
    finally:
        gateway.close()


def at_bridge(address: BridgeAddress, work: Callable[[HttpGateway], Awaitable[T]]) -> T:
    """Return the result of work with a gateway to a bridge, which ends with its run. Raises as ``open_gateway``
    does."""
    from dimos_streams.cli.system.async_runner import run_async

    async def main() -> T:
        async with open_gateway(address, ends_with_run=True) as gateway:
            return await work(gateway)

    return run_async(main())


def _gone(record: RunRecord | None) -> NoRunError | None:
    """Return the error of a run that has ended; None if it lives, or nobody knows the run."""
    from dimos_streams.cli.bridge_client.ended import end_of, ended_in

    run = None if record is None else ended_in(record.run_dir)
    return None if run is None else NoRunError(f"run {run.run_id} {end_of(run)}")
