"""The runner of a plan: a supervisor of processes, or one process, with the recording that was asked for."""

from __future__ import annotations

from dimos_streams.blueprint.kinds import RECORDER, is_of
from dimos_streams.blueprint.model import Blueprint
from dimos_streams.blueprint.settings import defaults_of
from dimos_streams.blueprint.wiring import message_types
from dimos_streams.cli.running.run_plan import RunPlan
from dimos_streams.recording.metadata import describe
from dimos_streams.runtime.events import OnRunEvent
from dimos_streams.runtime.facts import run_facts
from dimos_streams.runtime.in_process import InProcessRun
from dimos_streams.runtime.live.supervisor import Supervisor
from dimos_streams.runtime.options import RunOptions


def create_runner(plan: RunPlan, options: RunOptions, on_event: OnRunEvent) -> Supervisor | InProcessRun:
    """Return the runner of a plan, with its recording. Raises ``UserError`` if there can't be one."""
    blueprint, record = plan.blueprint, plan.record
    own = [spec for spec in blueprint.modules.values() if is_of(spec, RECORDER)]
    if record is None and not own:
        return _runner(plan.mode, blueprint, options, on_event)
    defaults = defaults_of(blueprint)  # what its types say is secret is known from then on
    metadata = describe(
        blueprint=blueprint.model_dump(mode="json"),
        defaults=defaults,
        seed=plan.request.seed,
        mode=plan.mode,
        said=plan.request.said,
        selection=record.selection if record is not None else None,
        environment=run_facts(),
        types=message_types(blueprint),
    )
    blueprint = blueprint.with_modules(
        spec.configured(["metadata"], metadata.model_dump(mode="json"), "run")
        for spec in own
        if "metadata" not in spec.config
    )
    if record is None:
        return _runner(plan.mode, blueprint, options, on_event)
    if plan.mode == "live":
        return Supervisor(record.add_to(blueprint, metadata), options, on_event)
    return InProcessRun(blueprint, options, on_event, attach=[lambda bus: record.attachment(bus, metadata)])


def _runner(mode: str, blueprint: Blueprint, options: RunOptions, on_event: OnRunEvent) -> Supervisor | InProcessRun:
    return (Supervisor if mode == "live" else InProcessRun)(blueprint, options, on_event)
