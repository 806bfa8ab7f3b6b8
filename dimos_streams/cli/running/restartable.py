"""Restarts of modules while a run goes on: on order, and when their files change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from dimos_streams.common.tasks import end_tasks
from dimos_streams.runtime.events import OnRunEvent
from dimos_streams.runtime.live.control import take_orders
from dimos_streams.runtime.live.reloading import Reloader
from dimos_streams.runtime.live.supervisor import Supervisor


@asynccontextmanager
async def restartable(
    supervisor: Supervisor, run_dir: Path, on_restarted: Callable[[], None], *, on_reload: OnRunEvent | None = None
) -> AsyncIterator[None]:
    """Restart modules of a run when commands ask for it, and when their files change if there is ``on_reload``, which
    hears of that. ``on_restarted`` is called before an order is answered, whatever has become of it."""

    async def restart(module: str, reason: str) -> tuple[str, ...]:
        try:
            return await supervisor.restart(module, reason)
        finally:
            on_restarted()  # whoever gave the order finds in `status` what has become of it

    async with take_orders(run_dir, restart):
        if on_reload is None:
            yield
            return
        reloading = asyncio.create_task(Reloader(supervisor, on_reload).run())
        try:
            yield
        finally:
            await end_tasks(reloading)
