"""Waits for the rest of a robot: what a simulator says before nobody hears, and it takes the processor from them."""

from __future__ import annotations

import asyncio

from dimos_streams import clock
from dimos_streams.module import Module
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory

COMPLETE_WITHIN_S = 5.0
_LOOK_S = 0.05


async def until_complete(module: Module) -> None:
    """Wait until all modules that begin together with this one, of the same robot, are ready.

    Its health names them meanwhile. It waits no longer than 5 s for a module, since that one may wait for this one.
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
