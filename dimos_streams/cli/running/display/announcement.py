"""The lines that say that a run starts, and where it is reached once it is ready."""

from __future__ import annotations

from pathlib import Path

from dimos_streams.cli.running.foxglove_plan import foxglove_lines
from dimos_streams.cli.running.run_plan import RunPlan
from dimos_streams.common.readable.plural import plural
from dimos_streams.runtime.options import RunOptions


def start_line(plan: RunPlan) -> str:
    """Return the line with which a run begins."""
    on = f" on machine {plan.part.machine!r}" if plan.part else ""
    return f"starting {plan.blueprint.name}: {plural(len(plan.blueprint.modules), 'module')}{on}"


def ready_text(plan: RunPlan, options: RunOptions, run_dir: Path | None, after_s: float) -> str:
    """Return the lines that say where a run is reached, which was ready ``after_s`` seconds after its start. In
    virtual time, where it is over before there is much to look at, they name fewer places."""
    bridge = f"bridge {options.bridge_url}" if plan.serves else ""
    files = f"files {run_dir}" if run_dir else ""
    if plan.mode == "virtual":
        lines = ["ready", bridge, files]
    else:
        dashboard = f"dashboard {options.bridge_url}/" if plan.serves else ""
        lines = [f"ready after {after_s:.1f} s", bridge, dashboard, *foxglove_lines(plan.blueprint), files]
    return "\n".join(filter(None, lines))
