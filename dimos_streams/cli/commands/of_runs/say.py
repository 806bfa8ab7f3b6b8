"""The command that tells the agent something: say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dimos_streams.cli.commands.of_runs import call_options
from dimos_streams.cli.commands.of_runs.call_exit import exit_by
from dimos_streams.cli.option_groups.bridge_choice import BridgeChoice
from dimos_streams.cli.terminal import options
from dimos_streams.cli.terminal.output import note
from dimos_streams.errors import UserError

if TYPE_CHECKING:
    from dimos_streams.cli.bridge_client.calls.skill_calls import CallOptions
    from dimos_streams.cli.bridge_client.connection import BridgeAddress
    from dimos_streams.client.http_gateway import HttpGateway
    from dimos_streams.tool_stream.event import ToolEvent


def say(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to tell the agent.")],
    agent: options.AgentName = "",
    now: Annotated[
        bool,
        typer.Option(
            "--now",
            help="Interrupt the answer that the agent is giving, so that it hears this next. Running calls continue.",
        ),
    ] = False,
    wait: call_options.Wait = "answer",
    timeout: call_options.Timeout = None,
    *,
    bridge: BridgeChoice,
    as_json: options.JsonLines = False,
) -> None:
    """Tell the agent something and show its reply. With several agents, begin the text with the name of one,
    'robot1: …', or choose one with `--agent`.

    A stop ("stop", "halt now", "robot, stop!") ends all that the agent does, at once; other input waits. This command
    shows the calls that the input leads to; `follow` shows any other call.

    With `--wait close` it continues until all that the input began is over, and exits with 0 only if that completed;
    otherwise the last line, or with `--json` `data.result.reason` of the last event, says why. Without it, this also
    holds for an end that comes before the reply.

    Where the agent is paused this command waits until somebody resumes it, with a terminal or a `--timeout`; without
    both it takes back what was said, and exits with 1.
    """
    from dimos_streams.cli.bridge_client.agents import agents_named_by
    from dimos_streams.cli.bridge_client.calls.paused_agents import may_outwait
    from dimos_streams.cli.bridge_client.calls.skill_calls import CallOptions
    from dimos_streams.cli.bridge_client.connection import at_bridge, find_bridge

    if not text.strip():
        raise UserError(f"TEXT {text!r} says nothing")
    address = find_bridge(bridge)
    chosen = CallOptions(
        until=wait,
        timeout_s=timeout,
        as_json=as_json,
        bridge_options=str(bridge),
        agent=agent,
        outwaits_pause=may_outwait(timeout),
    )
    given = {"text": text, "now": True} if now else {"text": text}
    with agents_named_by("--agent NAME, or begin with 'NAME: '"):
        event = at_bridge(address, lambda gateway: _said(gateway, address, given, chosen))
    exit_by(event)


async def _said(
    gateway: HttpGateway, address: BridgeAddress, arguments: Mapping[str, Any], chosen: CallOptions
) -> ToolEvent:
    """Say something, follow it, and return the event waited for; then say which machines of the run are not there."""
    from dimos_streams.cli.bridge_client.calls.skill_calls import follow_saying
    from dimos_streams.cli.bridge_client.machine_parts import absent_at

    try:
        return await follow_saying(gateway, arguments, chosen)
    finally:  # not before: it may be a stop
        for machine in await absent_at(address):
            note(f"machine {machine!r} is not there, nor are its skills")
