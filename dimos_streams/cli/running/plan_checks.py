"""Checks for what a run can't be asked for: options that contradict each other, or the blueprint."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from dimos_streams.cli.running.run_plan import Mode, RunPlan, waits_for_the_world
from dimos_streams.cli.system.foxglove_option import FOXGLOVE
from dimos_streams.common.schemas.http_url import bridge_url
from dimos_streams.errors import UserError


def mode_of(*, in_process: bool, virtual_time: bool) -> Mode:
    """Return the mode that two options choose. Raises ``UserError``."""
    if in_process and virtual_time:
        raise UserError("--virtual-time is in one process anyway; leave out --in-process")
    return "virtual" if virtual_time else "in-process" if in_process else "live"


def check_options(
    mode: Mode,
    *,
    say: Sequence[str] | None,
    duration_s: float | None,
    exit_when_done: bool,
    daemon: bool,
    bus: str | None,
    log_stdout: bool,
    machine: str | None = None,
    wait_s: float | None = None,
    hub: str | None = None,
    foxglove: str | None = None,
) -> None:
    """Refuse what contradicts itself whatever the blueprint is. Raises ``UserError``."""
    virtual = mode == "virtual"
    for text in say or ():
        if not text.strip():  # as an empty variable of a script does
            raise UserError(f"--say {text!r} says nothing")
    if exit_when_done and not say:
        raise UserError("--exit-when-done waits for the end of what --say began; give --say TEXT")
    if virtual and duration_s is None and not exit_when_done:
        raise UserError("virtual time never waits, so it needs an end: give --duration SECONDS or --exit-when-done")
    if log_stdout and (virtual or daemon):
        why = "--virtual-time has no processes that log" if virtual else "--daemon leaves standard output at once"
        raise UserError(
            f"{why}: leave out --log-stdout{'' if virtual else '; `dimos-streams logs -f` shows the same'}"
        )
    if wait_s is not None and machine is None:
        raise UserError("--wait is for the other machines of a blueprint: it goes with --machine")
    if virtual and machine is not None:
        raise UserError("in virtual time one process runs all machines' modules: leave out --machine")
    values = {"--bus": bus, "--hub": hub, FOXGLOVE: foxglove}
    given = {"--daemon": daemon, **{option: value is not None for option, value in values.items()}}
    for option in (option for option, is_given in given.items() if virtual and is_given):
        raise UserError(f"--virtual-time has no use for {option}: nothing leaves the process")


def check_plan(plan: RunPlan, port: int | None) -> None:
    """Refuse what the blueprint can't do. ``port`` is that of the option, if it was given. Raises ``UserError``."""
    virtual, name = plan.mode == "virtual", plan.blueprint.name
    if plan.bridge_url is not None:
        bridge_url(plan.bridge_url)
        if plan.part is None or plan.bridge is not None:
            why = "it goes with --machine" if plan.part is None else f"{plan.bridge!r} is on this one"
            raise UserError(f"--bridge names the bridge of another machine: {why}")
    if plan.part is not None and plan.bridge is None and plan.part.bridge_on:
        for option, given in (("--say", plan.say), ("--port", port)):
            if given:
                raise UserError(
                    f"{option} is about the bridge, which is on machine {plan.part.bridge_on!r}: give it there"
                )
    if virtual and (asked := waits_for_the_world(plan.blueprint)) is not None:
        raise UserError(f"{asked} asks a server, for which virtual time can't wait; run it live or --in-process")
    if virtual and port is not None and plan.bridge is None:
        raise UserError(f"blueprint {name!r} has no bridge that could serve on --port {port}")
    if plan.say and plan.bridge is None:
        raise UserError(f"blueprint {name!r} has no bridge, so there is no agent to say anything to")
    for text in plan.say:
        plan.listener(text)
    if plan.record is not None:
        plan.record.check()


def watch_sources(mode: Mode) -> None:
    """Prepare this process and those that it starts for ``--reload``. Raises ``UserError`` if that can't be done."""
    from dimos_streams.runtime.live.reloading import check_watching

    if mode != "live":
        option = "--virtual-time" if mode == "virtual" else "--in-process"
        raise UserError(f"--reload restarts processes, and with {option} there is one: leave out either")
    check_watching()
    # What is compiled while sources change may be taken for newer than it is; workers inherit the variable.
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
