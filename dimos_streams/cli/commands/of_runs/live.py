"""The commands that change a run that goes on: set and restart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from dimos_streams.cli.bridge_client.completion import run_modules
from dimos_streams.cli.option_groups.bridge_choice import BridgeChoice
from dimos_streams.cli.system.completion import Offer, offering
from dimos_streams.cli.terminal import options
from dimos_streams.cli.terminal.output import write, write_json


@offering
def _live_settings(context: typer.Context) -> Iterable[Offer]:
    """The settings that are live of the run that the command line means, and of the other parts of its blueprint,
    with what they began with."""
    from dimos_streams.cli.bridge_client.connection import living_runs
    from dimos_streams.cli.running.begun_with import kept_settings
    from dimos_streams.cli.terminal.named_runs import parts_of_newest

    if context.params.get("url") is not None or context.params.get("port") is not None:
        return ()  # a hub's or another machine's
    parts = parts_of_newest(living_runs(context.params.get("run")))
    rows = (row for part in parts for row in kept_settings(part.run_dir))
    return ((f"{row.module}.{row.field}", str(row.value)) for row in rows if row.live)


def set_settings(
    assignments: Annotated[
        list[str],
        typer.Argument(
            metavar="MODULE.SETTING=VALUE…",
            help="A setting and its new value in YAML, as for `run --set`. If one of several is refused, none is"
            " changed.",
            autocompletion=_live_settings,
        ),
    ],
    *,
    bridge: BridgeChoice,
    as_json: options.Json = False,
) -> None:
    """Change live settings of running modules; `config` shows which are live. At a fleet's hub the robot's
    name stands before the module's: `robot1/follow.distance_m=1`."""
    from dimos_streams.cli.bridge_client.connection import find_bridge
    from dimos_streams.cli.bridge_client.setting_changes import change_settings
    from dimos_streams.cli.system.async_runner import run_async

    done = run_async(change_settings(find_bridge(bridge), assignments))
    if as_json:
        write_json(done.model_dump(mode="json"), indent=2)
    else:
        for line in map(str, done.changes or [done.text]):
            write(line)


def restart(
    module: Annotated[
        str,
        typer.Argument(
            metavar="MODULE",
            help="The name of the module, or of its process, as `status` shows them.",
            autocompletion=run_modules,
        ),
    ],
    run: options.RunOption = None,
    as_json: options.Json = False,
) -> None:
    """Restart a module, and those that share its process, with their present code. Other processes keep running.

    The calls of restarted modules are cancelled. If the code can't be imported, or does not take the module's
    settings, nothing is restarted.
    """
    from dimos_streams.cli.bridge_client.connection import find_run_with
    from dimos_streams.cli.bridge_client.module_restart import restart_module
    from dimos_streams.cli.system.async_runner import run_async
    from dimos_streams.errors import UserError

    record = find_run_with(module, run)
    if any(process.pid == record.pid for process in record.processes):
        raise UserError(f"run {record.run_id} has all modules in one process: `stop` it and `run` it again")
    answer = run_async(restart_module(record, module))
    if as_json:
        write_json({"run_id": record.run_id, "restarted": list(answer.modules)}, indent=2)
    else:
        write(answer.text)
