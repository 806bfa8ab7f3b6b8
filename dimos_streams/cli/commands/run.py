"""The command that runs a blueprint."""

from __future__ import annotations

import sys
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING

import typer

from dimos_streams.cli.exit_codes import FAILED
from dimos_streams.cli.option_groups.run_request import RunRequest
from dimos_streams.cli.terminal.output import note, outliving_output, sole_output

if TYPE_CHECKING:
    from dimos_streams.cli.running.run_plan import RunPlan


def run(request: RunRequest) -> None:
    """Run a blueprint: live, a process for each module, until Ctrl-C, `stop` or the end of `--duration`."""
    from dimos_streams.cli.running.plan_checks import check_request, watch_sources
    from dimos_streams.common.process.threads import one_thread_for_matrices

    check_request(request)
    one_thread_for_matrices()
    if request.reload:
        watch_sources(request.mode)
    known = frozenset(sys.modules)
    with sole_output() if request.as_json else nullcontext():
        plan = _plan(request)
    _execute(plan, known)


def _plan(request: RunRequest) -> RunPlan:
    """Return the plan of a run, and show what may be wrong with it. Raises ``UserError``."""
    from dimos_streams.cli.running.plan_checks import check_plan
    from dimos_streams.cli.running.record_plan import unused_patterns
    from dimos_streams.cli.running.run_plan import prepare

    plan = prepare(request)
    check_plan(plan)
    if plan.record is not None and plan.part is None:  # a part does not know all channels of the other machines
        for line in unused_patterns(plan.record, plan.blueprint):
            note(line)
    return plan


def _execute(plan: RunPlan, known: frozenset[str]) -> None:
    from dimos_streams.cli.running.session import run_session
    from dimos_streams.runtime.processes.output import guard_output
    from dimos_streams.runtime.run_directories import keep_private

    keep_private()
    with outliving_output() as lost, ExitStack() as alone:
        guard_output(lost.add)
        on_ready = None
        if plan.request.daemon:
            from dimos_streams.cli.running.daemon import detach

            on_ready = detach(alone, as_json=plan.request.as_json)
        if plan.request.as_json:
            alone.enter_context(sole_output())
        if plan.mode == "live" and not plan.request.reload:  # a process imports what is to be reloaded by itself
            _fork_server(plan, known)
        code = run_session(plan, on_ready=on_ready)
    if code or lost.why:
        raise typer.Exit(code or FAILED)


def _fork_server(plan: RunPlan, known: frozenset[str]) -> None:
    from dimos_streams.runtime.plan import library_imports, own_packages, plan_modules
    from dimos_streams.runtime.processes.fork_server import fork_server_from_here

    modules = plan_modules(plan.blueprint)
    fork_server_from_here(library_imports(modules), own_packages(modules), known)
