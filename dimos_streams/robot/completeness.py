"""Waits for the other modules of a robot: what a simulator publishes before they are ready is lost, and simulating
takes processor time that they need to start."""

from __future__ import annotations

import asyncio

from dimos_streams import clock
from dimos_streams.module import Module
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory

COMPLETE_WITHIN_S = 5.0
_LOOK_S = 0.05


async def until_complete(module: Module) -> None:
    """Wait until all modules of the same robot that start together with this one are ready.

    Meanwhile the health of this module names those that are missing. After ``COMPLETE_WITHIN_S`` it goes on without
    them, since one of them may be waiting for this module.
    """
    directory = module.context.services.get(ModuleDirectory)
    deadline = clock.monotonic() + COMPLETE_WITHIN_S
    while missing := [name for name in module.context.robot if not _is_there(directory, name)]:
        if clock.monotonic() >= deadline:
            module.log.warning(
                "begins without %s, which took longer than %g s", ", ".join(missing), COMPLETE_WITHIN_S
            )
            break
        module.health = f"waits for {', '.join(missing)}"
        await asyncio.sleep(_LOOK_S)
    module.health = "ok"


def _is_there(directory: ModuleDirectory | None, name: str) -> bool:
    view = None if directory is None else directory.module(name)
    return view is not None and view.alive
