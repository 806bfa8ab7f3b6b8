"""The commands that begin, follow, list and cancel calls: call, follow, calls, cancel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dimos_streams.cli.bridge_client import completion
from dimos_streams.cli.commands.of_runs import call_options
from dimos_streams.cli.commands.of_runs.call_exit import exit_by
from dimos_streams.cli.option_groups.bridge_choice import BridgeChoice, KeptBridge
from dimos_streams.cli.terminal import options
from dimos_streams.cli.terminal.output import note, while_read, write, write_json, write_table
from dimos_streams.common.readable.plural import plural
from dimos_streams.errors import CallRejectedError, RobotNeededError, SkillError, UnknownSkillError, UserError

if TYPE_CHECKING:
    from dimos_streams.cli.bridge_client.calls.skill_calls import CallOptions
    from dimos_streams.client.http_gateway import HttpGateway
    from dimos_streams.runtime.ended_runs import EndedRun
    from dimos_streams.tool_stream.event import ToolEvent
    from dimos_streams.tool_stream.gateway import CallView


def call(
    skill: Annotated[
        str, typer.Argument(metavar="SKILL", help="The skill's name; see `skills`.", autocompletion=completion.skills)
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Option(
            "--arg", "-a", metavar="NAME=VALUE", help="An argument; the value is YAML. May be given several times."
        ),
    ] = None,
    arguments_json: Annotated[
        str | None, typer.Option("--args-json", metavar="OBJECT", help="The arguments as a JSON object.")
    ] = None,
    *,
    new: call_options.NewCall,
    robot: options.FleetRobot = None,
    wait: call_options.Wait = "close",
    timeout: call_options.Timeout = None,
    bridge: BridgeChoice,
    as_json: options.JsonLines = False,
) -> None:
    """Call a skill and show its events. Exits with 0 only if the call completed.

    With `--wait answer` the command ends with the first answer, which counts as success, and the call continues.
    Ctrl-C and `--timeout` cancel the call, even one that another command has begun with the same
    `--idempotency-key`; `follow` only watches.
    """
    from dimos_streams.cli.bridge_client.calls.paused_agents import may_outwait
    from dimos_streams.cli.bridge_client.calls.skill_calls import CallOptions
    from dimos_streams.cli.bridge_client.connection import at_bridge, find_bridge
    from dimos_streams.operator.known_names import CLI

    if not skill.strip():
        raise UserError(f"SKILL {skill!r} names none; `dimos-streams skills` lists them")
    chosen = CallOptions(
        until=wait,
        timeout_s=timeout,
        as_json=as_json,
        caller=new.caller or CLI,
        bridge_options=str(bridge),
        terms=new.terms(),
        lease_wait_s=new.lease_wait,
        robot=robot,
        outwaits_pause=may_outwait(timeout),
    )
    address = find_bridge(bridge)
    exit_by(at_bridge(address, lambda gateway: _call_skill(gateway, skill, arguments or (), arguments_json, chosen)))


async def _call_skill(
    gateway: HttpGateway, skill: str, arguments: Sequence[str], arguments_json: str | None, chosen: CallOptions
) -> ToolEvent:
    """Call a skill as the command line has it, and return the event waited for. Raises ``UserError`` for arguments
    that the skill does not take, and the errors of ``follow_new_call`` with what a person can do about them."""
    from dimos_streams.cli.bridge_client.calls.skill_calls import follow_new_call
    from dimos_streams.cli.terminal.refusals import ways_on
    from dimos_streams.cli.terminal.skill_arguments import parse_arguments
    from dimos_streams.common.names import skill_meant, taken_for
    from dimos_streams.skill import public_names

    offered = {each.name: each for each in await gateway.skills()}
    full = public_names(skill)[0] if chosen.robot is None else f"{chosen.robot}_{skill}"
    named = offered.get(skill_meant(full, offered) or full)
    schemas = named.parameters if named is not None and chosen.robot in (None, named.robot) else {}
    given = parse_arguments(arguments, arguments_json, schemas)
    if taken_for(chosen.caller) in {each.module for each in offered.values() if each.agent}:
        raise UserError(f"--caller {chosen.caller!r} is the name of an agent: valid is a name of your own")
    try:
        return await follow_new_call(gateway, skill, given, chosen, only=True)
    except CallRejectedError as error:
        error.args = (f"{error}{ways_on(error, chosen.waits_s)}",)
        raise
    except UnknownSkillError as error:
        error.args = (f"{error}; `dimos-streams skills{chosen.bridge_options}` lists them",)
        raise
    except RobotNeededError as error:
        names = [name for name, each in offered.items() if name == f"{each.robot}_{skill}"]
        remedy = f"call {' or '.join(names)}, or give --robot" if names else "give --robot"
        raise RobotNeededError(f"several robots have a skill {skill!r}; {remedy}") from error


def follow(
    call_id: Annotated[
        str,
        typer.Argument(
            metavar="CALL", help="The call's id, or its beginning; see `calls`.", autocompletion=completion.open_calls
        ),
    ],
    robot: options.FleetRobot = None,
    wait: call_options.Wait = "close",
    timeout: call_options.FollowTimeout = None,
    *,
    bridge: KeptBridge,
    as_json: options.JsonLines = False,
) -> None:
    """Show the events of a running call, past ones first, until it closes. Exits with 0 only if it completed.

    Ctrl-C and `--timeout` end this command only: the call continues. With `--wait answer` its first answer, which may
    have come already, counts as success. Of a closed call the events are shown that the bridge still has, and of a
    call of an ended run those in the run's journal; then `--wait` has no effect.
    """
    from dimos_streams.cli.bridge_client.calls.skill_calls import CallOptions, follow_call
    from dimos_streams.cli.bridge_client.connection import at_bridge, find_bridge
    from dimos_streams.cli.bridge_client.ended_calls import show_call
    from dimos_streams.cli.system.async_runner import run_async

    if (ended := _find_ended(bridge)) is not None:
        exit_by(run_async(show_call(ended, call_id, robot, as_json=as_json)))
        return
    chosen = CallOptions(until=wait, timeout_s=timeout, as_json=as_json, robot=robot, bridge_options=str(bridge))
    exit_by(at_bridge(find_bridge(bridge), lambda gateway: while_read(follow_call(gateway, call_id, chosen))))


def calls(
    open_only: Annotated[bool, typer.Option("--open", help="List only open calls.")] = False,
    every: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Also list calls by which programs only read the state of agents: approvals, reviews, reports.",
        ),
    ] = False,
    *,
    bridge: KeptBridge,
    as_json: options.Json = False,
) -> None:
    """List the calls that the bridge remembers, oldest first; calls that a skill makes are listed below its own.

    Calls by which programs only read the state of agents are left out. The calls of an ended run are read from its
    journal."""
    from dimos_streams.cli.bridge_client.calls.call_list import call_table, in_families
    from dimos_streams.cli.bridge_client.connection import at_bridge, find_bridge

    if (ended := _find_ended(bridge)) is not None:
        found = _kept_calls(ended, open_only=open_only, every=every)
    else:
        found = at_bridge(
            find_bridge(bridge), lambda gateway: _remembered_calls(gateway, open_only=open_only, every=every)
        )
    if as_json:
        write_json([view.model_dump(mode="json") for view in found], indent=2)
    elif found:
        write_table(*call_table(in_families(found)))
    else:
        note("no open calls" if open_only else "no calls")


async def _remembered_calls(gateway: HttpGateway, *, open_only: bool, every: bool) -> list[CallView]:
    """Return the calls that a bridge remembers."""
    from dimos_streams.cli.bridge_client.declarations import Declarations

    views = await gateway.calls(open_only=open_only)
    return views if every else await Declarations(gateway).without_looks(views)


def _kept_calls(run: EndedRun, *, open_only: bool, every: bool) -> list[CallView]:
    """Return the calls in the journal of a run that has ended; how it ended, and how many were open then, is said."""
    from dimos_streams.cli.bridge_client.ended import end_of
    from dimos_streams.cli.bridge_client.ended_calls import calls_of
    from dimos_streams.operator.agents import is_look

    found = [view for view in calls_of(run) if not (open_only and view.state == "closed")]
    left = sum(view.state != "closed" for view in found)
    note(f"run {run.run_id} {end_of(run)}" + (f"; {plural(left, 'call')} open then" if left else ""))
    return [view for view in found if every or not is_look(view)]


def cancel(
    call_id: Annotated[
        str | None,
        typer.Argument(
            metavar="[CALL]",
            help="The call's id, or its beginning; see `calls`.",
            autocompletion=completion.open_calls,
        ),
    ] = None,
    every: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Cancel every open call, of the run that --run names or of all living runs. Robots may still be"
            " moved.",
        ),
    ] = False,
    reason: Annotated[
        str, typer.Option("--reason", help="The reason that the call's caller is told.")
    ] = "cancelled by the operator",
    robot: options.FleetRobot = None,
    *,
    bridge: BridgeChoice,
    as_json: options.Json = False,
) -> None:
    """Cancel a call, or all of them, and wait for the close; exits with 1 if one does not close within a bound."""
    if every == (call_id is not None):
        raise UserError("name one call, or give --all" if call_id is None else "give a call or --all, not both")
    if every and robot is not None:
        raise UserError("--all is every robot's calls: --robot goes with one call")
    if call_id is None:
        from dimos_streams.cli.commands.of_runs.robots import cancel_all

        cancel_all(reason, bridge, as_json=as_json)
        return
    from dimos_streams.cli.bridge_client.calls.skill_calls import cancel_call
    from dimos_streams.cli.bridge_client.connection import at_bridge, find_bridge

    view = at_bridge(find_bridge(bridge), lambda gateway: cancel_call(gateway, call_id, reason, robot))
    _show_cancelled(view, as_json=as_json)


def _show_cancelled(view: CallView, *, as_json: bool) -> None:
    """Show a call after it was asked to end. Raises ``SkillError`` if it goes on."""
    from dimos_streams.cli.bridge_client.calls.skill_calls import how_to_end

    if as_json:
        write_json(view.model_dump(mode="json"), indent=2)
    if view.outcome is None:
        goes_on = f"{view.skill} [{view.call_id}] was asked to end but goes on: {view.text}"
        raise SkillError(f"{goes_on}; {how_to_end(view.module)}")
    if not as_json:
        write(f"{view.skill} [{view.call_id}] {view.outcome}: {view.text}")


def _find_ended(bridge: BridgeChoice) -> EndedRun | None:
    """Return the run that the options name, if it has ended. Raises ``UserError``."""
    from dimos_streams.cli.bridge_client.ended import find_ended

    bridge.check()
    return None if bridge.run is None else find_ended(bridge.run)
