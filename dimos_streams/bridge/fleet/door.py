"""The door through which commands of a hub enter: the bridge's own HTTP interface, as far as they may use it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json
from starlette.types import ASGIApp, Message, Scope

from dimos_streams.bridge.calls.authority import MCP
from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bridge.calls.visibility import shown_to_models, stoppable_by_models
from dimos_streams.bridge.http.call_routes import BEGIN_BY, check_caller
from dimos_streams.common.invalid import first_problem
from dimos_streams.common.json.reading import parse_json
from dimos_streams.errors import CallRejectedError, UnknownCallError
from dimos_streams.fleet import models_cancel
from dimos_streams.fleet.commands import Command
from dimos_streams.fleet.last_order import LastOrder
from dimos_streams.fleet.paths import bare_path, is_open
from dimos_streams.fleet.protocol import MAX_ANSWER_BYTES
from dimos_streams.serving import problem_kinds
from dimos_streams.serving.problem_kinds import ProblemKind
from dimos_streams.tool_stream.gateway import CallFacts

_HEADERS = {b"location": "Location", b"link": "Link"}


@dataclass(frozen=True, slots=True)
class DoorReply:
    """The bridge's reply to a command."""

    status: int
    body: Any
    headers: dict[str, str]
    refused: bool = False
    """True if the command did not get through the door, and nothing was done."""


def refusal(kind: ProblemKind, detail: str, *, refused: bool = True) -> DoorReply:
    """A reply with a problem."""
    body = {"type": kind.type, "title": kind.title, "status": kind.status, "detail": detail}
    return DoorReply(kind.status, body, {}, refused)


def too_large(size: int) -> DoorReply:
    """The reply in the place of one that has ``size`` bytes."""
    text = f"the answer has {size} bytes, a hub takes {MAX_ANSWER_BYTES}; ask for less"
    return refusal(problem_kinds.TOO_LARGE, text, refused=False)


class Door:
    """Hands commands to the bridge's app as if they had come over HTTP: the same checks, the same gates."""

    def __init__(self, app: ASGIApp, broker: Broker, last_order: LastOrder) -> None:
        """``app`` is the app without its guard, which checks hosts and tokens: a hub has shown who it is."""
        self._app = app
        self._broker = broker
        self._last_order = last_order

    async def enter(self, command: Command, begin_by: float, key: str) -> DoorReply:
        """Carry a command out. No call begins later than ``begin_by``, on ``clock.steady``; one that the command
        begins has the idempotency key ``key``, unless it brings its own."""
        path = bare_path(command.path)
        if not is_open(command.role, command.method, command.path):
            return refusal(
                problem_kinds.NOT_FOUND, f"{command.method} {path}: nothing that a hub's {command.role} may ask for"
            )
        if command.role == "model" and path == models_cancel.PATH:
            return await self._cancel_for_model(command)
        self._last_order.note(command)
        body = command.body
        if begins_call(command):
            body = {**(body or {})}
            if body.get("idempotency_key") is None:
                body["idempotency_key"] = key
            if why := self._why_no_call(command, body):
                return refusal(problem_kinds.CALL_REJECTED, why)
        if command.role == "model" and (why := await self._why_not_for_models(path, body)):
            return refusal(problem_kinds.CALL_REJECTED, why)
        return await self._ask(command, body, begin_by)

    def _why_no_call(self, command: Command, body: dict[str, Any]) -> str:
        """The reason why a command begins no call; empty if it may, or if the call has begun before."""
        caller, key = body.get("caller"), body["idempotency_key"]
        if command.role == "operator" and (why := _why_not_for_operators(caller)):
            return why
        # The app checks later what they are.
        has_begun = isinstance(caller, str) and isinstance(key, str) and self._broker.has_begun(caller, key)
        return "" if has_begun else self._last_order.against(command)

    async def _why_not_for_models(self, path: str, body: dict[str, Any] | None) -> str:
        """The reason why a model may not ask for this; empty if it may."""
        if path == "/calls":
            caller = (body or {}).get("caller")
            if not (isinstance(caller, str) and caller.startswith(MCP)):
                return f"a call of a model has a caller that begins with {MCP!r}, not {caller!r}"
        elif path.startswith("/calls/"):
            is_theirs = stoppable_by_models if path.endswith("/cancel") else shown_to_models
            return await self._why_not_theirs(path.split("/")[2], is_theirs(self._broker))
        return ""

    async def _why_not_theirs(self, call_id: str, is_theirs: Callable[[CallFacts], bool]) -> str:
        """The reason why a call is nothing for models; empty if it is, or if there is none of that id."""
        with contextlib.suppress(UnknownCallError):  # which the app says
            if not is_theirs(await self._broker.view(call_id)):
                return f"call {call_id!r} is an operator's"
        return ""

    async def _cancel_for_model(self, command: Command) -> DoorReply:
        """End those of the calls that a model may end. What they would let begin does not begin, see
        ``Cancels.cancel_for_model``."""
        try:
            order = models_cancel.ModelsCancel.model_validate(command.body or {})
        except ValidationError as error:
            why = first_problem(error, "the body")
            return refusal(
                problem_kinds.NOT_FOUND,
                f"POST {models_cancel.PATH}: nothing that a hub's model may ask for in this way: {why}",
            )
        is_theirs = stoppable_by_models(self._broker)
        calls = [call_id for call_id in order.calls if not await self._why_not_theirs(call_id, is_theirs)]
        report = await self._broker.cancels.cancel_for_model(calls, order.reason, order.caller)
        return DoorReply(200, report.model_dump(mode="json"), {})

    async def _ask(self, command: Command, body: dict[str, Any] | None, begin_by: float) -> DoorReply:
        raw_path, _, query = command.path.partition("?")
        content = b"" if body is None else to_json(body)
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": command.method,
            "scheme": "http",
            "path": bare_path(command.path),
            "raw_path": raw_path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [
                (b"host", b"hub"),
                (b"content-type", b"application/json"),
                (b"content-length", b"%d" % len(content)),
            ],
            "client": None,
            "server": None,
            BEGIN_BY: begin_by,
        }
        answer = _ResponseEnd(content)
        await self._app(scope, answer.receive, answer.send)
        return answer.reply()


def _why_not_for_operators(caller: object) -> str:
    """The reason why an operator may not call by this name; empty if they may."""
    try:
        check_caller(caller if isinstance(caller, str) else "")
    except CallRejectedError as error:
        return str(error)
    return ""


class _ResponseEnd:
    """The other end of a request within the process."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._status = 500
        self._headers: dict[str, str] = {}
        self._content = bytearray()
        self._size = 0

    async def receive(self) -> Message:
        """The whole body."""
        return {"type": "http.request", "body": self._body, "more_body": False}

    async def send(self, message: Message) -> None:
        """Keep what fits into an answer to the hub."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            for name, value in message["headers"]:
                if name.lower() in _HEADERS:
                    self._headers[_HEADERS[name.lower()]] = value.decode("latin-1")[:2000]
        elif message["type"] == "http.response.body":
            piece = message.get("body", b"")
            self._size += len(piece)
            if self._size <= MAX_ANSWER_BYTES:
                self._content += piece

    def reply(self) -> DoorReply:
        """The reply that has come."""
        if self._size > MAX_ANSWER_BYTES:
            return too_large(self._size)
        try:
            body = parse_json(bytes(self._content)) if self._content else None
        except ValueError:
            return refusal(problem_kinds.HTTP_ERROR, "the bridge's answer is no JSON", refused=False)
        return DoorReply(self._status, body, self._headers)


def begins_call(command: Command) -> bool:
    """Return whether a command begins a call, which the bridge knows again by its idempotency key."""
    return command.method == "POST" and bare_path(command.path) == "/calls"
