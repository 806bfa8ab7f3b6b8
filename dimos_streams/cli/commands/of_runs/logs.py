"""The command that shows what the processes of a run have logged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from dimos_streams.cli.bridge_client import completion
from dimos_streams.cli.option_groups.bridge_choice import LogsBridge
from dimos_streams.cli.terminal import options
from dimos_streams.cli.terminal.output import note, while_read, write, write_json

if TYPE_CHECKING:
    from dimos_streams.cli.bridge_client.connection import BridgeAddress


def logs(
    selector: options.KeptRunArgument = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Show new lines as they come, until the run ends.")
    ] = False,
    process: Annotated[
        str | None,
        typer.Option(
            "--process",
            metavar="NAME",
            help="Show the log of this process only.",
            autocompletion=completion.logged_processes,
        ),
    ] = None,
    machine: options.Machine = None,
    *,
    bridge: LogsBridge,
    as_json: options.JsonLines = False,
) -> None:
    """Show what the processes of a run have logged. Of a part on another machine, show the newest lines."""
    from dimos_streams.cli.bridge_client.connection import find_bridge
    from dimos_streams.cli.bridge_client.machine_parts import part_here
    from dimos_streams.cli.system.async_runner import run_async
    from dimos_streams.cli.terminal.log_files import RunLogs, find_run_dir

    selector = options.named_run(selector, bridge.run)
    bridge.refuse_unless(machine is not None, by="--machine")
    part = None if machine is None or bridge.has_address else part_here(machine, selector)
    if machine is not None and part is None:
        address = find_bridge(replace(bridge, run=selector))
        run_async(while_read(_write_logs_of(address, machine, process, follow=follow, as_json=as_json)))
        return
    run_dir = find_run_dir(selector, process) if part is None else part.run_dir
    run_logs = RunLogs(run_dir, process, as_json=as_json)
    if run_logs.empty:
        note(f"there are no logs in {run_dir / 'logs'}")
    if follow:
        run_async(while_read(run_logs.follow()))
    else:
        run_logs.write_all()


async def _write_logs_of(
    address: BridgeAddress, machine: str, process: str | None, *, follow: bool, as_json: bool
) -> None:
    from dimos_streams.cli.bridge_client.machine_logs import MachineLogs

    logs = MachineLogs(address, machine, process)
    async for lines in logs.lines(follow=follow):
        for line in lines:
            if as_json:
                write_json(line.to_dict())
            else:
                write(line.raw if process is not None else f"{line.process}  {line.raw}")
