"""``/calls``: the routes that begin and cancel calls."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, Field

from dimos_streams.bridge.calls.authority import MCP
from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bridge.calls.closing import conflict_of
from dimos_streams.bridge.http.call_views import mount_call_views
from dimos_streams.client.call_body import MAX_LEASE_WAIT_S
from dimos_streams.common.names import KEY_RULE, MAX_NAME, NAME_PATTERN, NAME_RULE, is_key, is_name
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.common.schemas.json_model import JsonModel
from dimos_streams.errors import CallRejectedError
from dimos_streams.operator.agents import choose_agent
from dimos_streams.operator.known_names import HTTP
from dimos_streams.serving import links, problem_kinds
from dimos_streams.serving.openapi import answers, refusals
from dimos_streams.skill import OnDuplicate, OnLoss
from dimos_streams.tool_stream.event import MAX_UTIME
from dimos_streams.tool_stream.gateway import CallView
from dimos_streams.tool_stream.protocol.bounds import MAX_REASON

BEGIN_BY = "dimos_streams.begin_by"
"""Key under which the scope of a request that did not come over HTTP has the latest time for a call to begin. The
caller's name is checked where such a request comes in."""
MAX_WAIT_S = 300.0
DEFAULT_WAIT_S = 30.0

Wait = Literal["answer", "close"]
WaitFor = Annotated[Wait | None, Query(description="The event to wait for: the call's first update, or its end.")]
WaitAtMost = Annotated[float, Query(ge=0, le=MAX_WAIT_S, description="The longest time to wait, in seconds.")]


def _checked_name(name: str) -> str:
    if not is_name(name):
        raise ValueError(NAME_RULE)
    return name


def _checked_key(key: str) -> str:
    if not is_key(key):
        raise ValueError(KEY_RULE)
    return key


_Short = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
Key = Annotated[_Short, AfterValidator(_checked_key), Field(description=KEY_RULE)]
Name = Annotated[_Short, AfterValidator(_checked_name), Field(json_schema_extra={"pattern": NAME_PATTERN})]


def check_caller(caller: str) -> None:
    """Raise ``CallRejectedError`` for a caller whose calls come another way: MCP clients read calls of their name as
    their own."""
    if caller.startswith(MCP):
        raise CallRejectedError(
            f"{caller!r} is the name of an MCP client, and calls in its name come by /mcp: call by a name of your own"
        )


class CallBody(JsonModel, defer_build=False):
    """Body of ``POST /calls``."""

    skill: Name
    agent: Annotated[str, Field(max_length=MAX_NAME)] | None = None
    """The agent whose ``skill`` it is, by the name of its module or namespace, empty for the only agent; ``skill`` is
    then without the namespace."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    caller: Name = HTTP
    on_duplicate: OnDuplicate | None = None
    idempotency_key: Key | None = None
    lease_wait_s: float = Field(default=0.0, ge=0, le=MAX_LEASE_WAIT_S)
    """Maximum time, in seconds, that the call may wait for a resource that another one holds."""
    on_loss: OnLoss | None = None
    """The policy for a cut link, to stop or to go on; without it its skill decides."""
    robot_order: Annotated[int, Field(ge=0, le=MAX_UTIME)] | None = None
    """The newest of ``orders`` in ``GET /robots`` that the caller knew when it asked: after a newer one for its robot
    a call that may move it does not begin."""


class BegunCall(FrozenModel):
    """The answer to ``POST /calls`` that does not wait."""

    call_id: str


class WaitedCall(CallView):
    """The answer to ``POST /calls?wait=``."""

    waited: Literal["answer", "close", "timed_out"]
    """The event that was waited for, or ``timed_out`` if it did not come in time."""


class CancelRequest(JsonModel):
    """Body of ``POST /calls/{id}/cancel``; it may be left out."""

    reason: str = Field(default="cancelled over HTTP", max_length=MAX_REASON)


_BEGUN = answers(
    201,
    "The call was requested; with `wait`, as it is after that.",
    Location="The call.",
    Link=links.EVENTS,
) | refusals(*problem_kinds.BEGINNING, problem_kinds.BAD_REQUEST, takes_body=True)


def mount_calls(app: FastAPI, broker: Broker) -> None:
    """Add the routes to an app, and those by which calls are looked at."""
    _mount_begin(app, broker)
    mount_call_views(app, lambda: broker.ledger.calls, broker.view)

    @app.post(
        "/calls/{call_id}/cancel",
        status_code=202,
        responses=refusals(problem_kinds.UNKNOWN_CALL, problem_kinds.BAD_REQUEST, takes_body=True),
    )
    async def cancel_call(call_id: str, body: CancelRequest | None = None) -> CallView:
        await broker.cancel(call_id, (body or CancelRequest()).reason)
        return await broker.view(call_id)


def _mount_begin(app: FastAPI, broker: Broker) -> None:
    @app.post(
        "/calls",
        status_code=201,
        response_model=WaitedCall | BegunCall,  # clients take the first that fits
        responses=_BEGUN,
    )
    async def begin_call(
        request: Request,
        body: CallBody,
        wait: WaitFor = None,
        timeout_s: WaitAtMost = DEFAULT_WAIT_S,
    ) -> JSONResponse:
        if BEGIN_BY not in request.scope:
            check_caller(body.caller)
        call_id = await _begin(broker, body, request.scope.get(BEGIN_BY))
        answer = BegunCall(call_id=call_id) if wait is None else await _wait_for(broker, call_id, wait, timeout_s)
        return JSONResponse(answer.model_dump(mode="json"), 201, headers=_where(broker, call_id))


async def _begin(broker: Broker, body: CallBody, begin_by: float | None) -> str:
    """Begin the call that a request asks for; return its id."""
    return await broker.call(
        body.skill if body.agent is None else await _skill_of_agent(broker, body.agent, body.skill),
        body.arguments,
        caller=body.caller,
        on_duplicate=body.on_duplicate,
        idempotency_key=body.idempotency_key,
        lease_wait_s=body.lease_wait_s,
        on_loss=body.on_loss,
        robot_order=body.robot_order,
        begin_by=begin_by,
    )


async def _wait_for(broker: Broker, call_id: str, wait: Wait, timeout_s: float) -> WaitedCall:
    """Return a call as it is after a wait. Raises the conflict for which it was rejected meanwhile."""
    ended = await broker.wait(call_id, wait, timeout_s)
    view = await broker.view(call_id)
    if conflict := conflict_of(broker.ledger.calls.get(call_id)):
        raise conflict
    return WaitedCall(**dict(view), waited=wait if ended else "timed_out")


async def _skill_of_agent(broker: Broker, agent: str, skill: str) -> str:
    """The public name of an agent's skill. Raises ``UnknownAgentError``."""
    return choose_agent(await broker.agents(agent), agent).skill(skill)


def _where(broker: Broker, call_id: str) -> dict[str, str]:
    """The headers that lead to a call, and to the events of all calls since before it began; that may be long ago for
    one that is asked for again with its key."""
    call = broker.ledger.begun(call_id)
    known_from = call.events_from if call is not None else 0
    first = known_from or broker.ledger.broadcast.first_offset
    return {"Location": f"/calls/{call_id}", "Link": links.events_from(first)}
