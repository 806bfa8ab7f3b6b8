"""The form of agents' events and snapshots in the tool stream of a ``report`` call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from dimos_streams.common.invalid import first_problem
from dimos_streams.common.json.depth import is_deeper
from dimos_streams.common.json.writing import json_text
from dimos_streams.common.readable.shortening import beginning
from dimos_streams.operator.messages.agent import AgentEvent, AgentSnapshot, ApprovalView, WaitingCall
from dimos_streams.tool_stream.protocol.bounds import MAX_DATA_DEPTH, MAX_PAYLOAD

MAX_REPORT = MAX_PAYLOAD - 4_000
"""Maximum bytes of an event's or a snapshot's JSON; the rest is for the update's text."""
_LIMITS = (8_000, 1_000, 100)
"""Limits to a text in an event, and to the bytes of a waiting call's arguments, tried in turn: both are shortened as
little as will do."""
_SHORTENED_DEPTH = MAX_DATA_DEPTH // 2
"""Maximum depth of what is shortened; a model may nest what it asks for as deep as it likes."""
_Asked = TypeVar("_Asked", ApprovalView, WaitingCall)


def event_data(event: AgentEvent) -> dict[str, Any]:
    """The data of the update that carries an event: ``await call.update(text, **event_data(event))``.

    What is too long for one update, or nested too deep, is shortened, and says so.
    """
    fields = event.model_dump(mode="json")
    for limit in _LIMITS:
        if _fits(fields):
            break
        fields = {**fields, "data": {**shortened(event.data, limit), "shortened": True}}
    if not _fits(fields):
        fields = {**fields, "missions": fields["missions"][:10], "data": {"shortened": True}}
    return {"event": fields}


def snapshot_data(snapshot: AgentSnapshot) -> dict[str, Any]:
    """The data of the progress that carries a snapshot: ``call.progress("", **snapshot_data(snapshot))``.

    Of a conversation that is too long the oldest entries are left out, then other long parts.
    """
    while not _fits(snapshot.model_dump(mode="json")):
        smaller = _smaller(snapshot)
        if smaller is None:
            break
        snapshot = smaller
    return {"snapshot": snapshot.model_dump(mode="json")}


def report_of(data: Mapping[str, Any]) -> AgentEvent | AgentSnapshot | None:
    """The report in the data of a ``report`` call's event. Raises ``ValueError`` if it is damaged."""
    try:
        if "event" in data:
            return AgentEvent.model_validate(data["event"])
        if "snapshot" in data:
            return AgentSnapshot.model_validate(data["snapshot"])
    except ValidationError as error:
        raise ValueError(first_problem(error, "it")) from error
    return None


def _smaller(snapshot: AgentSnapshot) -> AgentSnapshot | None:
    """The snapshot with about half of its longest expendable part; None if nothing is left to leave out."""
    if snapshot.conversation:
        return snapshot.model_copy(
            update={"conversation": snapshot.conversation[len(snapshot.conversation) // 2 + 1 :]}
        )
    if snapshot.plan is not None:
        return snapshot.model_copy(update={"plan": None})
    waits: list[ApprovalView | WaitingCall] = [*snapshot.approvals, *snapshot.waiting_calls]
    for limit in _LIMITS:
        if any(_size(asked.arguments) > limit for asked in waits):
            short = {
                "approvals": tuple(_with_arguments(view, limit) for view in snapshot.approvals),
                "waiting_calls": tuple(_with_arguments(call, limit) for call in snapshot.waiting_calls),
            }
            return snapshot.model_copy(update=short)
    for name in ("missions", "calls", "withheld_skills", "disabled_skills", "waiting_calls", "approvals"):
        parts = getattr(snapshot, name)
        if len(parts) > 1:
            return snapshot.model_copy(update={name: parts[: len(parts) // 2]})
    return None


def within(value: Any, most_bytes: int = MAX_REPORT) -> Any:
    """The value as JSON of at most ``most_bytes``: what is long is shortened, as little as will do."""
    for limit in (8_000, 4_000, 1_000, 100, 20):
        if _size(value) <= most_bytes:
            return value
        value = shortened(value, limit)
    return value if _size(value) <= most_bytes else {"shortened": True}


def approvals_within(views: Sequence[ApprovalView]) -> list[ApprovalView]:
    """Approvals as they fit into one event: long arguments are shortened, which their views say, then the newest left
    out."""
    kept = list(views)
    for limit in _LIMITS:
        if _approvals_size(kept) <= MAX_REPORT:
            break
        kept = [_with_arguments(view, limit) for view in kept]
    while len(kept) > 1 and _approvals_size(kept) > MAX_REPORT:
        kept = kept[: len(kept) // 2]
    return kept


def shortened(value: Any, limit: int, depth: int = _SHORTENED_DEPTH) -> Any:
    """JSON with no text, object or list longer than ``limit``, and nested no more than ``depth`` deep."""
    if isinstance(value, str):
        return beginning(value, limit)
    if not isinstance(value, Mapping | list | tuple):
        return value
    if depth == 0:
        return "…"
    if isinstance(value, Mapping):
        parts = list(value.items())[:limit]
        return {shortened(key, limit): shortened(part, limit, depth - 1) for key, part in parts}
    return [shortened(part, limit, depth - 1) for part in value[:limit]]


def _fits(value: Any) -> bool:
    """Return whether an event or a snapshot fits into one update, as one of its data."""
    text = json_text(value)
    return len(text.encode()) <= MAX_REPORT and not is_deeper(text, MAX_DATA_DEPTH - 1)


def _with_arguments(asked: _Asked, most_bytes: int) -> _Asked:
    arguments = within(asked.arguments, most_bytes)
    hidden = len(json_text(asked.arguments)) - len(json_text(arguments))
    return asked.model_copy(
        update={"arguments": arguments, "hidden_characters": asked.hidden_characters + max(0, hidden)}
    )


def _approvals_size(views: Sequence[ApprovalView]) -> int:
    return _size([view.model_dump(mode="json") for view in views])


def _size(fields: Any) -> int:
    return len(json_text(fields).encode())
