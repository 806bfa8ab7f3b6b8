"""Operators' commands to agents, as calls of the agents' own skills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dimos_streams.cli.bridge_client.event_watch import watching
from dimos_streams.cli.bridge_client.skill_calls import CALLER
from dimos_streams.cli.terminal.output import shortened, table_lines
from dimos_streams.cli.terminal.skill_arguments import parse_arguments
from dimos_streams.errors import SkillError, UserError
from dimos_streams.operator.agents import AgentView, agents_among, choose_agent
from dimos_streams.operator.messages import ApprovalView, HoldView

if TYPE_CHECKING:
    from dimos_streams.tool_stream.event import ToolEvent
    from dimos_streams.tool_stream.gateway import OfferedSkill, SkillGateway

CHAT_COMMANDS = frozenset({"pause", "resume", "step", "abort", "undo", "forget", "approvals", "approve", "reject"})
_SHOWN_ARGUMENTS = 80


async def command(gateway: SkillGateway, name: str, arguments: Mapping[str, Any], agent: str = "") -> ToolEvent:
    """Have an agent do something; how it ended. Raises ``UserError`` or ``SkillError`` if it did not."""
    offered = await gateway.skills()
    return await _ask(gateway, choose_agent(agents_among(offered), agent), name, arguments, offered)


async def hold(
    gateway: SkillGateway, name: str, arguments: Mapping[str, Any], agent: str = ""
) -> tuple[ToolEvent, bool]:
    """Have an agent hold its robot still, by ``pause`` or ``abort``; how it ended, and whether all gates confirm it.

    An agent that does not tell of gates confirms nothing. Raises ``UserError`` or ``SkillError`` if it did not.
    """
    closed = await command(gateway, name, arguments, agent)
    result = closed.data.get("result")
    fields = result if isinstance(result, Mapping) else {}
    view = HoldView.model_validate({key: fields[key] for key in HoldView.model_fields if key in fields})
    return closed, view.confirmed


async def _held(gateway: SkillGateway, name: str, arguments: Mapping[str, Any], agent: str) -> str:
    """``hold`` where nothing but the text is of interest. Raises ``SkillError`` if not all gates confirm it."""
    closed, confirmed = await hold(gateway, name, arguments, agent)
    if not confirmed:
        raise SkillError(closed.text)
    return closed.text


@dataclass(frozen=True, slots=True)
class Told:
    """What became of a command."""

    text: str
    """For people."""
    result: Any
    """For programs."""
    done: bool = True


async def take_back(gateway: SkillGateway, count: int, agent: str = "") -> Told:
    """Have an agent take back its newest calls: a line for each; it is done if all of them are undone.

    Raises ``UserError`` or ``SkillError`` if it did not try.
    """
    offered = await gateway.skills()
    closed = await _ask(gateway, choose_agent(agents_among(offered), agent), "undo", {"count": count}, offered)
    calls = closed.data.get("result") or ()
    lines = [f"{call['skill']} (call {call['call_id']}): {call['how']}: {call['text']}" for call in calls]
    text = "\n".join(lines) or "there is nothing to take back"
    return Told(text, list(calls), all(call["how"] == "undone" for call in calls))


async def _taken_back(gateway: SkillGateway, word: str, agent: str) -> str:
    """``take_back`` where nothing but the text is of interest. Raises ``SkillError`` if not all is undone."""
    if not word.isdecimal() or not int(word):
        raise UserError(f"/undo {word}: how many calls are to be taken back is a whole number from 1 on")
    told = await take_back(gateway, int(word), agent)
    if not told.done:
        raise SkillError(told.text)
    return told.text


async def pending(gateway: SkillGateway, agent: str = "") -> list[ApprovalView]:
    """The calls that wait for a decision, of one agent or of all."""
    offered = await gateway.skills()
    agents = agents_among(offered)
    asked = [choose_agent(agents, agent)] if agent or not agents else agents
    found: list[ApprovalView] = []
    for one in asked:
        closed = await _ask(gateway, one, "approvals", {}, offered)
        found += [ApprovalView.model_validate(view) for view in closed.data.get("result") or ()]
    return found


async def decide(
    gateway: SkillGateway,
    start: str,
    decision: str,
    *,
    changes: Sequence[str] = (),
    reason: str = "",
    agent: str = "",
) -> Told:
    """Decide on the pending approval whose id begins so, with changed arguments if any are given.

    Raises ``UserError`` if there is no such approval, or more than one.
    """
    approval = _one_of(await pending(gateway, agent), start)
    arguments: dict[str, Any] = {"approval": approval.id, "decision": decision, "reason": reason}
    if changes:
        schemas = {offered.name: offered.parameters for offered in await gateway.skills()}
        changed = parse_arguments(changes, None, schemas.get(approval.skill, {}))
        arguments["arguments"] = {**approval.arguments, **changed}
    closed = await command(gateway, "decide", arguments, approval.agent)
    with_changes = f" with {', '.join(changes)}" if changes else ""
    text = f"{approval.skill} [{approval.id}] of {approval.agent}: {decision}{with_changes}"
    return Told(text, closed.data.get("result"))


async def chat_command(gateway: SkillGateway, agent: str, name: str, words: Sequence[str]) -> str:
    """Carry a command out that was typed in a chat with an agent; what to say. Raises ``DimosStreamsError``."""
    match name, list(words):
        case "pause", []:
            return await _held(gateway, name, {}, agent)
        case "resume" | "forget", []:
            return (await command(gateway, name, {}, agent)).text
        case "step", [] | ["on"] | ["off"] | ["once"]:
            return (await command(gateway, "step", {"mode": words[0] if words else "once"}, agent)).text
        case "abort", [] | ["rollback"]:
            return await _held(gateway, name, {"rollback": bool(words)}, agent)
        case "undo", [] | [_]:
            return await _taken_back(gateway, words[0] if words else "1", agent)
        case "approvals", []:
            rows = [approval_row(view) for view in await pending(gateway, agent)]
            return "\n".join(table_lines(rows)) if rows else "nothing waits for approval"
        case "approve", [id, *changes]:
            return (await decide(gateway, id, "approve", changes=changes, agent=agent)).text
        case "reject", [id, *reason]:
            return (await decide(gateway, id, "reject", reason=" ".join(reason), agent=agent)).text
    raise UserError(f"/{name} is not to be used so; /help tells how")


def approval_row(view: ApprovalView) -> tuple[str, str, str, str, str]:
    """An approval as cells of a table."""
    given = ", ".join(f"{name}={value!r}" for name, value in view.arguments.items())
    return view.id, view.agent, view.skill, shortened(given, _SHOWN_ARGUMENTS), view.reason


async def _ask(
    gateway: SkillGateway,
    agent: AgentView,
    name: str,
    arguments: Mapping[str, Any],
    offered: Sequence[OfferedSkill],
) -> ToolEvent:
    """The close of a call of an agent's operator skill."""
    skill = agent.skill(name)
    if skill not in {one.name for one in offered}:
        raise UserError(f"agent {agent.name!r} has no skill {name!r}: it takes no such command")
    offset = await gateway.offset()
    call_id = await gateway.call(skill, arguments, caller=CALLER)
    async with watching(gateway, lambda event: None, after=offset, call_id=call_id) as watch:
        closed = await watch.wait(call_id, "close")
    if closed.outcome != "completed":
        raise SkillError(f"agent {agent.name!r}: {closed.text}")
    return closed


def _one_of(views: Sequence[ApprovalView], start: str) -> ApprovalView:
    found = [view for view in views if view.id == start] or [view for view in views if view.id.startswith(start)]
    if len(found) == 1:
        return found[0]
    if not found:
        waiting = ", ".join(view.id for view in views) or "none"
        raise UserError(f"no pending approval has an id that begins with {start!r} (pending: {waiting})")
    raise UserError(f"several approvals have ids that begin with {start!r}: {', '.join(view.id for view in found)}")
