"""The values that a shell offers for an argument: what a run or its bridge has at the moment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from dimos_streams.cli.system.completion import Offer, offering

if TYPE_CHECKING:
    from dimos_streams.cli.bridge_client.connection import BridgeAddress
    from dimos_streams.tool_stream.gateway import CallView


@offering
def run_modules(context: typer.Context) -> Iterable[Offer]:
    """The modules of the run that the command line means, and of the other parts of its blueprint."""
    from dimos_streams.cli.bridge_client.connection import living_runs
    from dimos_streams.cli.terminal.named_runs import parts_of_newest

    parts = parts_of_newest(living_runs(context.params.get("run")))
    return ((module, run.run_id) for run in parts for module in sorted(run.modules))


@offering
def logged_processes(context: typer.Context) -> Iterable[Offer]:
    """The processes of the run that the command line means, and of the other parts of its blueprint, as their logs
    are named."""
    from dimos_streams.cli.terminal.log_files import find_run_dir
    from dimos_streams.cli.terminal.named_runs import parts_of_newest, runs_called
    from dimos_streams.common.process.run_owner import run_id_of
    from dimos_streams.runtime.registry import runs

    selector = context.params.get("selector") or context.params.get("run")
    parts = [run.run_dir for run in parts_of_newest(runs_called(selector, runs()))]
    for run_dir in parts or [find_run_dir(selector)]:
        for log in sorted((run_dir / "logs").glob("*.log")):
            yield log.stem, run_id_of(run_dir)


@offering
def skills(context: typer.Context) -> Iterable[Offer]:
    """The skills that the bridge offers which the command line means."""
    import asyncio

    from pydantic import TypeAdapter

    from dimos_streams.tool_stream.gateway import OfferedSkill

    found = asyncio.run(_address(context).get("/skills", TypeAdapter(list[OfferedSkill])))
    return ((skill.name, skill.description.partition("\n")[0]) for skill in found)


@offering
def open_calls(context: typer.Context) -> Iterable[Offer]:
    """The ids of the calls that the bridge has and that are not closed."""
    import asyncio

    from dimos_streams.cli.bridge_client.connection import open_gateway
    from dimos_streams.cli.bridge_client.declarations import Declarations

    async def shown() -> list[CallView]:
        async with open_gateway(_address(context)) as gateway:
            return await Declarations(gateway).without_looks(await gateway.calls(open_only=True))

    return ((call.call_id, call.skill) for call in asyncio.run(shown()))


def _address(context: typer.Context) -> BridgeAddress:
    """Return the bridge that the command line names so far; of a token, only the environment's is known."""
    from dimos_streams.cli.bridge_client.connection import find_bridge
    from dimos_streams.cli.option_groups.bridge_choice import BridgeChoice

    given = {name: context.params.get(name) for name in ("run", "url", "port")}
    return find_bridge(BridgeChoice(**given))
