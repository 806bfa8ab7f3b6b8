"""``GET /calls`` and ``GET /calls/{id}``, which show the calls of a bridge or of a recording."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Annotated

from fastapi import FastAPI, Query, Response

from dimos_streams.bridge.calls.call_pages import DEFAULT_LIMIT, MAX_LIMIT, CallQuery, Cursor, CursorText, WantedState
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.serving import links, problem_kinds
from dimos_streams.serving.openapi import answers, refusals
from dimos_streams.tool_stream.gateway import CallView

OfState = Annotated[WantedState | None, Query(description="Only such calls are wanted.")]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="The most calls that the page may have.")]
PAGE_END = "Where a page ends; the Link header has it."
"""The description of ``before``, whose form is a bridge's or a hub's own."""


def mount_call_views(
    app: FastAPI, known: Callable[[], Iterable[CallState]], view: Callable[[str], Awaitable[CallView]]
) -> None:
    """Add the routes to an app. ``known`` returns the calls in any order; ``view`` returns one by its id, and raises
    ``UnknownCallError``."""
    turn = asyncio.Lock()

    @app.get(
        "/calls",
        response_model=list[CallView],
        responses=answers(200, "Calls, oldest first.", Link=links.OLDER) | refusals(problem_kinds.BAD_REQUEST),
    )
    async def calls(
        state: OfState = None,
        limit: Limit = DEFAULT_LIMIT,
        before: Annotated[CursorText | None, Query(description=PAGE_END)] = None,
    ) -> Response:
        query = CallQuery(state, None if before is None else Cursor.parse(before), limit)
        page = await query.page(known(), turn)
        response = Response(page.body, media_type="application/json")
        if page.before is not None:
            response.headers["Link"] = links.older("/calls", state=state, limit=limit, before=str(page.before))
        return response

    @app.get("/calls/{call_id}", responses=refusals(problem_kinds.UNKNOWN_CALL))
    async def one_call(call_id: str) -> CallView:
        return await view(call_id)
