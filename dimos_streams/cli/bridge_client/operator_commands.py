"""Operators' commands to agents, as calls of the agents' own skills."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import TypeAdapter, ValidationError

from dimos_streams.cli.bridge_client.agents import begin_at_agent, offered_agents
from dimos_streams.cli.bridge_client.calls.event_watch import watching
from dimos_streams.cli.system.abbreviated_ids import find_abbreviated
from dimos_streams.cli.terminal.approval_text import details, standing
from dimos_streams.cli.terminal.output import note
from dimos_streams.cli.terminal.skill_arguments import parse_arguments
from dimos_streams.common.invalid import first_problem
from dimos_streams.common.printable import printable
from dimos_streams.errors import SkillArgumentError, SkillError, UserError
from dimos_streams.operator.approval_reference import ApprovalReference
from dimos_streams.operator.known_names import CLI
from dimos_streams.operator.messages.agent import DECIDED, ApprovalView
from dimos_streams.operator.messages.kept_report import KeptReport, unkept_of
from dimos_streams.operator.order_results import has_come_true
from dimos_streams.tool_stream.gateway import SkillGateway

if TYPE_CHECKING:
    from dimos_streams.tool_stream.gateway import CallView

_WAIT_S = 30.0
"""Maximum time of one request, in seconds; a call that takes longer is followed by its events."""
_APPROVALS = TypeAdapter(list[ApprovalView])


class CommandGateway(SkillGateway, Protocol):
    """The protocol of what operators' commands need of a bridge; ``HttpGateway`` has it."""

    async def call_to_close(
        self, skill: str, arguments: Mapping[str, Any], *, caller: str, agent: str | None = None, wait_s: float = 30.0
    ) -> CallView:
        """See ``HttpGateway``."""


async def command(gateway: CommandGateway, name: str, arguments: Mapping[str, Any], agent: str = "") -> CallView:
    """Have an agent do something, at a bridge in one request, and return how it ended. The bridge finds the agent.

    Raises ``UnknownAgentError`` if it is not clear who is meant, ``SkillError`` if it was not done.
    """

    async def ask(skill: str, of: str | None) -> CallView:
        return await gateway.call_to_close(skill, arguments, caller=CLI, agent=of, wait_s=_WAIT_S)

    view = await begin_at_agent(gateway, agent, name, ask)
    if view.outcome is None:
        view = await _wait_for_close(gateway, view)
    if view.outcome != "completed":
        raise SkillError(f"agent {view.module!r}: {view.text}")
    return view


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of an operator's command."""

    text: str
    """Its text, for people."""
    result: Any
    """Its value, for programs."""
    done: bool = True
    """True if all of it has come true, and the agent will know of it when it is started again."""


async def order(gateway: CommandGateway, name: str, arguments: Mapping[str, Any], agent: str = "") -> CommandResult:
    """Have an agent carry out an order. It is done if all of it has come true: of ``pause`` and ``abort`` if all
    velocity gates confirm it, of ``undo`` if all calls are undone that there were.

    Raises as ``command`` does.
    """
    view = await command(gateway, name, arguments, agent)
    return CommandResult(view.text, view.result, has_come_true(name, view.result))


@dataclass(frozen=True, slots=True)
class PendingApprovals:
    """The calls that wait for a decision."""

    views: list[ApprovalView]
    is_complete: bool
    """False if an agent that was asked has not said what waits at it."""


async def pending_approvals(gateway: CommandGateway, agent: str = "", reference: str = "") -> PendingApprovals:
    """Return the calls that wait for a decision, of one agent or of all; with ``reference`` the one that is called
    so, with all its arguments, even if it is decided.

    Raises ``UserError`` if there is no such approval, or more than one.
    """
    wanted = ApprovalReference.of(reference) if reference else None
    asked = await _asked_agents(gateway, agent)
    listed = await _of_each(gateway, asked)
    found = [view for views in listed.values() for view in views]
    if wanted is None:
        return PendingApprovals(found, is_complete=len(listed) == len(asked))
    if all(view.id != wanted.id for view in found):
        remembered = await _of_each(gateway, list(listed), wanted.id)
        decided = [view for views in remembered.values() for view in views if view.id == wanted.id]
        found = decided or found
    return PendingApprovals([await _whole(gateway, _one_of(found, wanted))], is_complete=True)


async def pending(gateway: CommandGateway, agent: str = "", reference: str = "") -> list[ApprovalView]:
    """Return what ``pending_approvals`` has, as far as it is known. Raises as that does."""
    return (await pending_approvals(gateway, agent, reference)).views


async def _of_each(gateway: CommandGateway, agents: Sequence[str], id: str = "") -> dict[str, list[ApprovalView]]:
    """Return the approvals of agents, without those of agents that give no answer. Raises ``SkillError`` if none
    answers.

    Each robot's first agent is asked before any second one: requests wait for threads, and a robot that names many
    agents, none of which answers, is not to take the others' time.
    """
    named = Counter[str]()
    turns: dict[str, int] = {}
    for agent in agents:
        robot = agent.partition("/")[0]
        turns[agent] = named[robot]
        named[robot] += 1

    listed: dict[str, list[ApprovalView]] = {}
    silent: dict[str, SkillError] = {}

    async def ask(agent: str) -> None:
        try:
            listed[agent] = await _list_approvals(gateway, agent, id)
        except SkillError as error:
            silent[agent] = error

    await asyncio.gather(*map(ask, sorted(agents, key=turns.__getitem__)))
    for agent, error in silent.items():
        if not listed:
            raise error
        note(f"what waits at agent {agent!r} is not known: {error}")
    return {agent: listed[agent] for agent in agents if agent in listed}


async def _asked_agents(gateway: CommandGateway, agent: str) -> list[str]:
    """Return the names of the agents that are asked for approvals. One that is not there keeps nobody from deciding
    on those of the others. Raises ``UnknownAgentError``."""
    offered = await offered_agents(gateway)
    agents = offered.agents
    if agent or not agents:
        return [offered.choose(agent).name]
    there = [view for view in agents if view.available] or agents
    for view in agents:
        if view not in there:
            note(f"agent {view.name!r} is not there, and what waits at it is not known")
    return [view.name for view in there]


async def _list_approvals(gateway: CommandGateway, agent: str, id: str = "") -> list[ApprovalView]:
    try:
        async with asyncio.timeout(_WAIT_S / 2):
            view = await command(gateway, "approvals", {"approval": id} if id else {}, agent)
        return [_with_names_here(approval, agent) for approval in _APPROVALS.validate_python(view.result or [])]
    except TimeoutError:
        raise SkillError(f"agent {agent!r} has said nothing within {_WAIT_S / 2:g} s") from None
    except ValidationError as error:
        raise SkillError(f"agent {agent!r} answers with no approvals: {first_problem(error, 'result')}") from error


def _with_names_here(approval: ApprovalView, agent: str) -> ApprovalView:
    """Return an approval with the names that its agent and skill have here: a robot does not know that its own name
    stands before them at a hub. It is of the agent that was asked, whatever that says."""
    robot = agent.removesuffix(f"/{approval.agent}")
    skill = approval.skill if robot == agent else f"{robot}_{approval.skill}"
    return approval.model_copy(update={"agent": agent, "skill": skill})


async def decide(
    gateway: CommandGateway,
    reference: str,
    decision: str,
    *,
    changes: Sequence[str] = (),
    changes_json: str | None = None,
    reason: str = "",
    agent: str = "",
) -> CommandResult:
    """Decide on the approval that is called so, with changed arguments if any are given, as ``call`` takes them; of
    one that is decided the same way, say what holds.

    What is approved is the revision that is named, or else the one that is read here and shown. Raises ``UserError``
    if there is no such approval, or more than one, ``SkillArgumentError`` for arguments that its skill does not take,
    and ``ConflictError`` if it has another revision, or is decided otherwise.
    """
    revision = ApprovalReference.of(reference).revision
    (approval,) = await pending(gateway, agent, reference)
    arguments: dict[str, Any] = {"approval": approval.id, "decision": decision, "reason": reason}
    arguments["revision"] = revision or (approval.revision if decision == "approve" else None)
    said = [*changes, *([changes_json] if changes_json is not None else [])]
    if said:
        approval = await _change_arguments(gateway, approval, changes, changes_json)
        arguments["arguments"] = approval.arguments
    decided = await order(gateway, "decide", arguments, approval.agent)
    which = f"{approval.skill} [{approval.reference}] of {approval.agent}"
    if approval.state != "pending":
        return _with_unkept(decided, printable(f"{which}: {standing(approval)}"))
    with_changes = f" with {', '.join(said)}" if said else ""
    text = f"{which}: {DECIDED[decision]}{with_changes}"
    shown = details(approval) if decision == "approve" else []
    return _with_unkept(decided, "\n".join([printable(text), *(f"    {printable(line)}" for line in shown)]))


def _with_unkept(decided: CommandResult, text: str) -> CommandResult:
    """Return a decision with another text, which says besides if it is not kept."""
    return replace(decided, text=KeptReport(unkept=unkept_of(decided.result)).with_unkept(text))


async def _change_arguments(
    gateway: CommandGateway, approval: ApprovalView, changes: Sequence[str], changes_json: str | None
) -> ApprovalView:
    """Return an approval with arguments changed. Raises ``UserError`` if it is not known with all of them, and
    ``SkillArgumentError`` for a changed one that its skill does not take."""
    offered = next((skill for skill in await gateway.skills() if skill.name == approval.skill), None)
    changed = parse_arguments(changes, changes_json, offered.parameters if offered else {})
    _check_whole(approval)
    approval = approval.model_copy(update={"arguments": {**approval.arguments, **changed}})
    if offered is not None:
        from dimos_streams.tool_stream.arguments.schemas import check_arguments

        try:
            check_arguments(offered, approval.arguments)
        except SkillArgumentError as error:
            # What the others are was checked before, and may be shown redacted here.
            wrong = {path: text for path, text in error.problems.items() if path.partition(".")[0] in changed}
            if wrong:
                raise SkillArgumentError(approval.skill, wrong) from error
    return approval


async def _whole(gateway: CommandGateway, view: ApprovalView) -> ApprovalView:
    """Return an approval with all that can be had of its arguments; where many wait, long ones are shortened."""
    if not view.hidden_characters:
        return view
    return next(iter(await _list_approvals(gateway, view.agent, view.id)), view)


def _check_whole(view: ApprovalView) -> None:
    """Raise ``UserError`` if arguments are missing, which would then be taken for left out by the operator."""
    if view.hidden_characters:
        raise UserError(
            f"{view.hidden_characters} characters of the arguments of {view.id} are too long to be sent here: approve"
            " it as it is, or reject it"
        )


async def _wait_for_close(gateway: CommandGateway, view: CallView) -> CallView:
    """Return a call after its close, which is waited for without a bound: a rollback takes as long as the robot's way
    back."""
    async with watching(gateway, lambda event: None, after=0, call_id=view.call_id) as watch:
        closed = await watch.wait(view.call_id, "close")
    return view.model_copy(
        update={"outcome": closed.outcome, "text": closed.text, "result": closed.data.get("result")}
    )


def _one_of(views: Sequence[ApprovalView], wanted: ApprovalReference) -> ApprovalView:
    """Return the approval that is meant. A whole id is never taken for the beginning of another one, which would be
    another call than the one that was seen. Raises ``UserError`` if it is none of these, or more than one."""
    found = find_abbreviated(wanted.id, views, lambda view: view.id)
    if wanted.is_whole:
        found = [view for view in found if view.id == wanted.id]
    if len(found) == 1:
        return found[0]
    if not found:
        waiting = ", ".join(view.reference for view in views) or "none"
        whole, begun = "no approval that is remembered is called", "no pending approval has an id that begins with"
        raise UserError(f"{whole if wanted.is_whole else begun} {wanted.id!r} (pending: {waiting})")
    several = ", ".join(f"{view.reference} of {view.agent}" for view in found)
    raise UserError(f"several approvals have ids that begin with {wanted.id!r}: {several}")
