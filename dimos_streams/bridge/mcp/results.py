"""Tools and calls as a client sees them: for models as text, for programs (and the models of some clients) as JSON
that has the text as well."""

from __future__ import annotations

from typing import Any

from dimos_streams.bridge.mcp.reading import Page
from dimos_streams.common.json.writing import json_text
from dimos_streams.common.names import fleet_name, tool_name
from dimos_streams.common.schemas.references import FOREIGN_PARTS, inlined
from dimos_streams.common.secrets import redacted
from dimos_streams.errors import SkillError, UnknownCallError
from dimos_streams.journal.entry import EncodedEntry
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.gateway import CallView

_SHOWN_ARGUMENTS = 200
_LISTED_BYTES = 1000

READS: dict[str, bool] = {
    "readOnlyHint": True,
    "destructiveHint": False,
    "idempotentHint": True,
    "openWorldHint": False,
}
"""Annotations of a tool that only looks into the bridge."""
ENDS: dict[str, bool] = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "idempotentHint": True,
    "openWorldHint": True,
}
"""The annotations of a tool that ends what goes on."""


def content(text: str, *, is_error: bool = False, **structured: Any) -> dict[str, Any]:
    """The result of a tool."""
    text = redacted(text)
    return {
        "content": [{"type": "text", "text": text}],
        "isError": is_error,
        "structuredContent": {"text": text, **structured},
    }


def call_result(call: CallView, cursor: int) -> dict[str, Any]:
    """A call that the client has begun, at its answer. All that it said is behind the cursor, but for the answer."""
    failed = call.state == "closed" and call.outcome != "completed"
    fields = {
        "call_id": call.call_id,
        "state": call.state,
        "outcome": call.outcome,
        "result": call.result,
        "cursor": cursor,
    }
    if call.state == "closed":
        end = f"{call.outcome}: {call.text}" if failed else call.text
        answer = [call.answer] if call.answer not in (None, call.text) else []
        return content("\n".join([*map(str, answer), end]), is_error=failed, **fields)
    answer_text = call.answer if call.answer is not None else "not answered yet"
    goes_on = f"The call goes on as {call.call_id}: {_how_to_read_on(call.call_id, cursor)}"
    return content(f"{answer_text}\n\n{goes_on}", **fields)


def no_answer(call_id: str, cursor: int, why: SkillError) -> dict[str, Any]:
    """The result for a call whose answer can't be had. It is no error if the call has begun, and nobody can see how
    it stands: a model that is told of a failure begins it once more."""
    if not call_id or isinstance(why, UnknownCallError):
        return content(str(why), is_error=True)
    read_on = f"As soon as it can be seen, {_how_to_read_on(call_id, cursor)}"
    text = f"it can't be seen how call {call_id} stands, which may go on: {why}\n\n{read_on}"
    return content(text, call_id=call_id, state=None, outcome=None, result=None, cursor=cursor)


def _how_to_read_on(call_id: str, cursor: int) -> str:
    return f'skill_updates(call_id="{call_id}", after={cursor}) reads what it says next, cancel_call ends it.'


def call_view(call: CallView) -> dict[str, Any]:
    """A call as it stands, whoever has begun it."""
    return content(_line(call), **call.model_dump(mode="json", exclude={"text"}), newest=call.text)


def call_list(calls: list[CallView], *, more: bool) -> dict[str, Any]:
    """Several calls, without their results and large arguments."""
    shown = {"call_id", "robot", "skill", "caller", "state", "outcome", "text", "requested_utime", "closed_utime"}
    listed = []
    for call in calls:
        small = len(json_text(call.arguments)) <= _LISTED_BYTES
        listed.append(call.model_dump(mode="json", include=shown) | ({"arguments": call.arguments} if small else {}))
    lines = [_line(call) for call in calls]
    if more:
        lines.append(f'There are older ones: before="{calls[-1].call_id}" lists them.')
    return content("\n".join(lines) or "no calls", calls=listed, more=more)


def updates(page: Page, call: CallView | None) -> dict[str, Any]:
    """A page of events of calls."""
    lines = [_rendered(entry) for entry in page.entries] or ["nothing new"]
    if call is not None and call.state == "closed" and not page.more:
        lines.append(f"Call {call.call_id} is over: {call.outcome}.")
    else:
        lines.append(f"{'There is more: read' if page.more else 'Read'} on with after={page.cursor}.")
    state: dict[str, Any] = {}
    if call is not None:
        state["call"] = {"call_id": call.call_id, "state": call.state, "outcome": call.outcome}
    events = [{"offset": entry.offset, **entry.event.to_dict()} for entry in page.entries]
    return content("\n".join(lines), events=events, cursor=page.cursor, more=page.more, **state)


def skill_tool(skill: SkillInfo) -> dict[str, Any]:
    """A skill as a tool. What is not said of a tool counts as dangerous, so only what its author states is denied:
    clients run what is read-only without asking anybody. Raises ``ValueError`` for a schema from outside that can't
    be written without references."""
    may_begin_others = "then" in skill.parameters.get("properties", {})
    reads = skill.read_only and not (skill.may_move or may_begin_others)
    return {
        "name": tool_name(skill.name),
        "description": skill.description,
        "inputSchema": {**inlined(skill.parameters, FOREIGN_PARTS), "type": "object"},
        "annotations": {
            "readOnlyHint": reads,
            "destructiveHint": not reads,
            "idempotentHint": reads,
            "openWorldHint": True,
        },
    }


def _line(call: CallView) -> str:
    state = call.state if call.outcome is None else call.outcome
    arguments = json_text(call.arguments)[:_SHOWN_ARGUMENTS]
    return (
        f"{call.call_id}  {fleet_name(call.skill, call.robot)}({arguments}) for {call.caller}, {state}: {call.text}"
    )


def _rendered(entry: EncodedEntry) -> str:
    event = entry.event
    if event.type == "gap":
        return f"some events are lost: {event.text}"
    said = f"{event.outcome}: {event.text}" if event.type == "close" else f"says: {event.text}"
    return f"{fleet_name(event.skill, event.robot)} (call {event.call_id}) {said}"
