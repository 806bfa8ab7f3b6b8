"""The routes that serve the events of all calls: a stream, and pages for those who look back."""

from __future__ import annotations

from fastapi import FastAPI, Response

from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.errors import UnknownCallError
from dimos_streams.journal.broadcast import JournalBroadcast
from dimos_streams.journal.query import QueryBack
from dimos_streams.serving import problem_kinds, problems
from dimos_streams.serving.events import pages
from dimos_streams.serving.events.parameters import From, LastEventId, LastRead, OfCall, OfCaller, after_offset
from dimos_streams.serving.events.stream import EventStream
from dimos_streams.serving.openapi import event_stream, refusals
from dimos_streams.serving.server.connection_ends import ConnectionEnds
from dimos_streams.tool_stream.protocol.call_ids import is_call_id

_OWN_REFUSALS = refusals(problem_kinds.NOT_FOUND, problem_kinds.UNKNOWN_CALL, problem_kinds.BAD_REQUEST)
_STREAM = event_stream("the offset", "the event's fields")


def mount_events(
    app: FastAPI, broker: Broker, broadcast: JournalBroadcast, *, ping_s: float, connection_ends: ConnectionEnds
) -> None:
    """Add the routes that serve the events of all calls."""

    @app.get("/tool_streams", response_class=Response, response_model=None, responses=_STREAM | _OWN_REFUSALS)
    async def tool_streams(
        call: OfCall = None,
        caller: OfCaller = None,
        from_: From = None,
        last_event_id: LastEventId = None,
        last_read: LastRead = None,
    ) -> EventStream:
        _check_call(broker, call)
        return EventStream(
            broadcast,
            after=after_offset(last_event_id or last_read, from_),
            caller=caller,
            call_id=call,
            ping_s=ping_s,
            connection_ends=connection_ends,
        )

    @app.get("/events", response_class=Response, response_model=None, responses=pages.ANSWER | _OWN_REFUSALS)
    async def events(
        call: OfCall = None,
        caller: OfCaller = None,
        before: pages.Before = pages.NEWEST,
        limit: pages.Limit = pages.DEFAULT_LIMIT,
        progress: pages.Progress = False,
    ) -> Response:
        _check_call(broker, call)
        return await pages.page_back(broadcast, QueryBack(before, caller, call, progress=progress), limit)


def _check_call(broker: Broker, call: str | None) -> None:
    """Raise an error for a text that can't be a call's id, and for a call whose events are not kept. An unknown id
    passes: whoever calls on the bus chooses it, perhaps later, and events outlast their calls."""
    if call is not None and not is_call_id(call):
        raise UnknownCallError(call)
    if call is not None and not broker.journals(call):
        why = f"the events of call {call!r} are not kept: WS /monitor has what it reports"
        raise problems.ProblemError(problem_kinds.NOT_FOUND, why)
