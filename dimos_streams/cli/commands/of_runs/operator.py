"""The operator's hand on the agents: approvals, approve, reject, pause, resume, step, abort, undo, forget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from dimos_streams.cli.exit_codes import FAILED
from dimos_streams.cli.option_groups.bridge_choice import BridgeChoice
from dimos_streams.cli.terminal import options
from dimos_streams.cli.terminal.output import hanging_indent, note, terminal_width, write_json, write_lines
from dimos_streams.common.printable import printable
from dimos_streams.operator.step_words import STEP_WORDS, step_arguments

if TYPE_CHECKING:
    from dimos_streams.cli.bridge_client.operator_commands import CommandResult
    from dimos_streams.client.http_gateway import HttpGateway

T = TypeVar("T")

Approval = Annotated[
    str,
    typer.Argument(
        metavar="ID[@REVISION]",
        help="The approval's id, or its beginning; see `approvals`. With ID@REVISION the decision is refused if the "
        "call has been changed since that revision.",
    ),
]
Reason = Annotated[str, typer.Option("--reason", help="The reason that the agent is told.")]


@dataclass(frozen=True, kw_only=True)
class OperatorOptions:
    """The options of each operator's command: the agent that it is for, at which bridge, and how the answer is
    shown."""

    agent: options.AgentName = ""
    bridge: BridgeChoice
    as_json: options.Json = False


def approvals(
    approval: Annotated[
        str, typer.Argument(metavar="[ID]", help="The approval's id, or its beginning: show only this one.")
    ] = "",
    *,
    chosen: OperatorOptions,
) -> None:
    """List the calls that wait for an operator's decision, with all their arguments, and all steps of plans.

    Exit code 1 if an agent has not answered what waits for approval.
    """
    from dimos_streams.cli.bridge_client.operator_commands import pending_approvals
    from dimos_streams.cli.terminal.approval_text import HEADERS, approval_lines

    found = _at_agent(lambda gateway: pending_approvals(gateway, chosen.agent, approval), chosen.bridge)
    if chosen.as_json:
        write_json([view.model_dump(mode="json") for view in found.views], indent=2)
    elif found.views:
        for line in approval_lines(found.views, HEADERS):
            write_lines(hanging_indent(printable(line), terminal_width()))
    else:
        note("nothing waits for approval" if found.is_complete else "nothing else is known to wait for approval")
    if not found.is_complete:
        raise typer.Exit(FAILED)


def approve(
    approval: Approval,
    arguments: Annotated[
        list[str] | None,
        typer.Option(
            "--arg",
            "-a",
            metavar="NAME=VALUE",
            help="Change an argument; the value is YAML. May be given several times.",
        ),
    ] = None,
    arguments_json: Annotated[
        str | None, typer.Option("--args-json", metavar="OBJECT", help="Changed arguments as a JSON object.")
    ] = None,
    *,
    chosen: OperatorOptions,
) -> None:
    """Let a call begin that waits for approval, with the arguments that are then shown, or with changed ones."""
    from dimos_streams.cli.bridge_client.operator_commands import decide

    done = _at_agent(
        lambda gateway: decide(
            gateway, approval, "approve", changes=arguments or (), changes_json=arguments_json, agent=chosen.agent
        ),
        chosen.bridge,
    )
    _show(done, chosen.as_json)


def reject(approval: Approval, reason: Reason = "", *, chosen: OperatorOptions) -> None:
    """Refuse a call that waits for approval."""
    from dimos_streams.cli.bridge_client.operator_commands import decide

    done = _at_agent(
        lambda gateway: decide(gateway, approval, "reject", reason=reason, agent=chosen.agent), chosen.bridge
    )
    _show(done, chosen.as_json)


def pause(reason: Reason = "", *, chosen: OperatorOptions) -> None:
    """Hold the robot still and begin nothing new. Exit code 1 unless every velocity gate says that it holds."""
    _command("pause", {"reason": reason}, chosen)


def resume(reason: Reason = "", *, chosen: OperatorOptions) -> None:
    """Go on after a pause, or leave step mode."""
    _command("resume", {"reason": reason}, chosen)


def step(
    word: Annotated[
        str,
        typer.Argument(
            metavar=STEP_WORDS,
            help="on and off switch step mode; once lets the oldest waiting call begin; ID lets that call begin.",
            autocompletion=lambda: ["on", "off", "once"],
        ),
    ] = "once",
    *,
    chosen: OperatorOptions,
) -> None:
    """Let the agent's calls begin one by one."""
    _command("step", step_arguments(word), chosen)


def abort(
    rollback: Annotated[
        bool,
        typer.Option("--rollback", help="Also undo what the missions have done, newest first, as far as possible."),
    ] = False,
    reason: Reason = "",
    *,
    chosen: OperatorOptions,
) -> None:
    """End the agent's missions and their calls. Exit code 1 unless every velocity gate has held the robot still."""
    _command("abort", {"rollback": rollback, "reason": reason}, chosen)


def undo(
    count: Annotated[
        int, typer.Argument(metavar="[COUNT]", min=1, help="The number of calls to undo, newest first.")
    ] = 1,
    *,
    chosen: OperatorOptions,
) -> None:
    """Take back the newest calls of the agent, newest first. Exit code 1 if one of them could not be
    undone."""
    _command("undo", {"count": count}, chosen)


def forget(*, chosen: OperatorOptions) -> None:
    """Begin a new conversation with an agent; its record stays."""
    _command("forget", {}, chosen)


def _at_agent(work: Callable[[HttpGateway], Awaitable[T]], bridge: BridgeChoice) -> T:
    """Return the result of work at a bridge; an error that asks for an agent's name says which option takes it."""
    from dimos_streams.cli.bridge_client.agents import agents_named_by
    from dimos_streams.cli.bridge_client.connection import at_bridge, find_bridge

    with agents_named_by("--agent NAME"):
        return at_bridge(find_bridge(bridge), work)


def _command(name: str, arguments: dict[str, Any], chosen: OperatorOptions) -> None:
    from dimos_streams.cli.bridge_client.operator_commands import order

    done = _at_agent(lambda gateway: order(gateway, name, arguments, chosen.agent), chosen.bridge)
    _show(done, chosen.as_json)


def _show(done: CommandResult, as_json: bool) -> None:
    """Show the result of a command. Raises ``typer.Exit(1)`` if not all of it has come true, or is not kept."""
    if as_json:
        write_json({"text": done.text, "result": done.result}, indent=2)
    else:
        write_lines(hanging_indent(done.text, terminal_width()))
    if not done.done:
        raise typer.Exit(FAILED)
