"""Checks for what a run can't be asked for: options that contradict each other, or the blueprint."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dimos_streams.blueprint.model import Blueprint
from dimos_streams.cli.option_groups.foxglove_option import FOXGLOVE
from dimos_streams.cli.option_groups.run_request import Mode, RunRequest
from dimos_streams.cli.running.run_plan import RunPlan
from dimos_streams.common.schemas.http_url import bridge_url
from dimos_streams.errors import UserError


def check_request(request: RunRequest) -> None:
    """Refuse what contradicts itself whatever the blueprint is. Raises ``UserError``."""
    if request.record is None and (request.record_channels or request.record_without or request.record_split_mb):
        raise UserError("--record-channels, --record-without and --record-split go with --record FILE")
    if request.record == Path():
        raise UserError("--record names no file: it is empty, or the working directory")
    if request.in_process and request.virtual_time:
        raise UserError("--virtual-time is in one process anyway; leave out --in-process")
    for text in request.said:
        if not text.strip():  # as an empty variable of a script does
            raise UserError(f"--say {text!r} says nothing")
    if request.exit_when_done and not request.said:
        raise UserError("--exit-when-done waits for the end of what --say began; give --say TEXT")
    if request.virtual_time and request.duration_s is None and not request.exit_when_done:
        raise UserError("virtual time never waits, so it needs an end: give --duration SECONDS or --exit-when-done")
    if request.log_stdout and request.virtual_time:
        raise UserError("--virtual-time has no processes that log: leave out --log-stdout")
    if request.log_stdout and request.daemon:
        raise UserError(
            "--daemon leaves standard output at once: leave out --log-stdout; `dimos-streams logs -f` shows the same"
        )
    if request.wait_s is not None and request.machine is None:
        raise UserError("--wait is for the other machines of a blueprint: it goes with --machine")
    if request.virtual_time:
        _check_virtual(request)


def _check_virtual(request: RunRequest) -> None:
    """Refuse what has no sense where one process is the whole world. Raises ``UserError``."""
    if request.machine is not None:
        raise UserError("in virtual time one process runs all machines' modules: leave out --machine")
    values = {"--bus": request.bus, "--hub": request.hub, FOXGLOVE: request.foxglove}
    given = {"--daemon": request.daemon, **{option: value is not None for option, value in values.items()}}
    for option, is_given in given.items():
        if is_given:
            raise UserError(f"--virtual-time has no use for {option}: nothing leaves the process")


def check_plan(plan: RunPlan) -> None:
    """Refuse what the blueprint can't do. Raises ``UserError``."""
    request, name = plan.request, plan.blueprint.name
    virtual, port = request.virtual_time, request.port
    if request.bridge_url is not None:
        bridge_url(request.bridge_url)
        if plan.part is None or plan.bridge is not None:
            why = "it goes with --machine" if plan.part is None else f"{plan.bridge!r} is on this one"
            raise UserError(f"--bridge names the bridge of another machine: {why}")
    if plan.part is not None and plan.bridge is None and plan.part.bridge_on:
        for option, given in (("--say", request.said), ("--port", port)):
            if given:
                raise UserError(
                    f"{option} is about the bridge, which is on machine {plan.part.bridge_on!r}: give it there"
                )
    if virtual and (asked := _asking_a_server(plan.blueprint)) is not None:
        raise UserError(f"{asked} asks a server, for which virtual time can't wait; run it live or --in-process")
    if virtual and port is not None and plan.bridge is None:
        raise UserError(f"blueprint {name!r} has no bridge that could serve on --port {port}")
    if request.said and plan.bridge is None:
        raise UserError(f"blueprint {name!r} has no bridge, so there is no agent to say anything to")
    for text in request.said:
        plan.listener(text)
    if plan.record is not None:
        plan.record.check()


def _asking_a_server(blueprint: Blueprint) -> str | None:
    """Return the setting of a blueprint by which an agent asks a server, or None: servers answer in wall time, and
    virtual time can't wait."""
    from dimos_streams.agent.models import asks_server

    for name, spec in blueprint.modules.items():
        for path, value in _leaves(spec.config):
            if path[-1] == "model" and asks_server(str(value)):
                return f"{name}.{'.'.join(path)}={value}"
    return None


def _leaves(config: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value


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
