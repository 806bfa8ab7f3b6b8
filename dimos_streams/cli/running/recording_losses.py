"""The losses of a live run's recording, as its recorder tells of them; a run goes on without what a disk refuses."""

from __future__ import annotations

import asyncio
import contextlib

from dimos_streams.blueprint.kinds import RECORDER, is_of
from dimos_streams.cli.bridge_client.connection import BridgeAddress
from dimos_streams.cli.running.record_plan import NAME
from dimos_streams.cli.running.run_plan import RunPlan
from dimos_streams.errors import DimosStreamsError
from dimos_streams.runtime.options import RunOptions

_BOUND_S = 1.0
"""Maximum time, in seconds, for which the end of a run waits for its bridge."""


async def recording_losses(plan: RunPlan, options: RunOptions) -> list[str]:
    """Return a line for each recorder of a plan that is not well, by what the run's bridge has heard. A bridge that
    does not answer, or none, tells of nothing."""
    from dimos_streams.cli.bridge_client.answers import MODULES

    recorders = {spec.name for spec in plan.blueprint.modules.values() if is_of(spec, RECORDER)}
    if plan.record is not None:
        recorders.add(NAME)
    if plan.mode != "live" or plan.bridge is None or not recorders:
        return []
    with contextlib.suppress(TimeoutError, DimosStreamsError):
        async with asyncio.timeout(_BOUND_S):
            modules = await BridgeAddress(options.bridge_url, options.token).get("/modules", MODULES)
            return [
                f"recording: {module.health}"
                for module in modules
                if module.name in recorders and module.health != "ok"
            ]
    return []
