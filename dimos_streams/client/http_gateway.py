"""A bridge over HTTP, as the agent sees it."""

from __future__ import annotations

import contextlib
import logging
import random
import secrets
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from pydantic import TypeAdapter

from dimos_streams import clock
from dimos_streams.client.asking_again import IN_DOUBT, ask_until_answered, stop_until_answered
from dimos_streams.client.bridge_requests import BridgeRequests
from dimos_streams.client.call_body import call_body
from dimos_streams.client.event_stream.sse_parser import SseEvent
from dimos_streams.client.orders import ANSWER_S, ORDER_IN_DOUBT, Order, OrderReport, OrdersAnswer, RobotsAnswer
from dimos_streams.client.sse_client import SseClient
from dimos_streams.common.json.reading import parse_json
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.schemas.http_url import bridge_url
from dimos_streams.common.secrets import checked, know
from dimos_streams.errors import CallInDoubtError, NoAnswerError, SkillError
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.gateway import MAX_ENDED_AT_ONCE, CallTerms, CallView, JournalEntry, OfferedSkill

if TYPE_CHECKING:
    import requests

    from dimos_streams.client.http_session import Tls


class Begun(NamedTuple):
    """A call that a bridge has begun."""

    call_id: str
    offset: int
    """The journal's newest offset before that: all events of the call come behind it."""


_SKILLS = TypeAdapter(list[OfferedSkill])
_CALLS = TypeAdapter(list[CallView])
_CALL = TypeAdapter(CallView)
_REPORT = TypeAdapter(OrderReport)
_ROBOTS = TypeAdapter(RobotsAnswer)
_ORDERS = TypeAdapter(OrdersAnswer)
_EVENT_TYPE = "tool_stream"
_MAX_PAGES = 10_000
"""Maximum number of pages of calls that are followed; a bridge remembers some thousand calls, and each page has one
at least."""

_log = LimitedLog(logging.getLogger(__name__))


class HttpGateway:
    """A ``SkillGateway`` over a bridge's HTTP interface. Use from one loop; requests run in threads.

    A bridge that can't be reached is a ``SkillUnavailableError`` that names the URL, for all but ``events``, which
    goes on trying. ``malformed`` counts the invalid events that were skipped.
    """

    def __init__(
        self,
        url: str,
        *,
        rng: random.Random | None = None,
        token: str | None = None,
        timeout_s: float = 10.0,
        ping_s: float = 10.0,
        tls: Tls | None = None,
        gone: Callable[[], Exception | None] = lambda: None,
    ) -> None:
        """``timeout_s`` bounds each wait for the bridge: for a connection, for an answer, and for more of one.
        ``ping_s`` is the pause of the bridge's pings. ``rng`` is for jitter, see ``Backoff``. ``tls`` is for a URL of
        ``https``. ``gone`` is called on another thread whenever events can't be read, and may return what ``events``
        is to raise instead of trying again, since the bridge does not come back.

        Raises ``UserError`` for a URL that no server has, and for a token that no header can carry.
        """
        self.url = bridge_url(url)
        if token is not None:
            know(checked(token, "the token for the bridge"))
        self.malformed = 0
        self._requests = BridgeRequests(self.url, token=token, timeout_s=timeout_s, tls=tls)
        self._random = rng
        self._ping_s = ping_s
        self._tls = tls
        self._gone = gone

    async def skills(self) -> list[OfferedSkill]:
        """See ``SkillGateway``."""
        return self._requests.validated(_SKILLS, await self._requests.get("/skills"))

    async def call(self, skill: str, arguments: Mapping[str, Any], *, caller: str, **terms: Unpack[CallTerms]) -> str:
        """See ``SkillGateway``. If the answer is lost, whoever has given a key may ask again; without one it is asked
        again here, as by ``begin``."""
        body = call_body(skill, arguments, caller=caller, **terms)
        if terms.get("idempotency_key") is None:
            response = await self._begun_once(body)
        else:
            response = await self._requests.post("/calls", body)
        return self._requests.field(self._requests.content(response), "call_id", str)

    async def begin(
        self,
        skill: str,
        arguments: Mapping[str, Any],
        *,
        caller: str,
        agent: str | None = None,
        lease_wait_s: float = 0.0,
        robot: str | None = None,
        **terms: Unpack[CallTerms],
    ) -> Begun:
        """Begin a call, and learn from where on its events are to be read, in one request. If the answer is lost, ask
        again for the same call. With the idempotency key of a call that has begun it is that one.

        With ``agent``, ``skill`` is that agent's, without its namespace; ``""`` is the only agent. ``robot`` is one
        of a fleet, and ``skill`` what it calls it itself. ``lease_wait_s`` is how long the call may wait for what
        another one holds, in seconds.
        Raises as ``call`` does, ``UnknownAgentError``, and ``CallInDoubtError`` if the bridge does not come back.
        """
        more = {"agent": agent, "lease_wait_s": lease_wait_s or None, "robot": robot}
        body = call_body(skill, arguments, caller=caller, **terms, **more)
        response = await self._begun_once(body, lease_wait_s)
        call_id = self._requests.field(self._requests.content(response), "call_id", str)
        query = parse_qs(urlsplit(response.links.get("events", {}).get("url", "")).query)
        try:
            return Begun(call_id, int(query["from"][0]) - 1)
        except (LookupError, ValueError) as error:
            raise SkillError(f"{self.url} is not a bridge that I know: its answer has no link to events") from error

    async def call_to_close(
        self, skill: str, arguments: Mapping[str, Any], *, caller: str, agent: str | None = None, wait_s: float = 30.0
    ) -> CallView:
        """Begin a call and wait for its close, in one request; return the call as it is then, or as it stands after
        ``wait_s``. If the answer is lost, as that of a bridge that was killed, ask again for the same call.

        ``agent`` and errors are as for ``begin``; raises ``CallInDoubtError`` if the bridge does not come back.
        """
        body = call_body(skill, arguments, caller=caller, agent=agent, idempotency_key=secrets.token_hex(8))
        deadline = clock.monotonic() + wait_s

        async def ask() -> Any:
            within_s = max(0.0, deadline - clock.monotonic())
            path = f"/calls?{urlencode({'wait': 'close', 'timeout_s': within_s})}"
            return self._requests.content(await self._requests.post(path, body, self._requests.timeout_s + within_s))

        content = await ask_until_answered(ask, IN_DOUBT)
        if isinstance(content, dict):
            content.pop("waited", None)
        return self._requests.validated(_CALL, content)

    async def stops(self) -> list[int]:
        """Return the stops of robots that hold now, by their times in µs since the Unix epoch: a release names these
        in ``seen``."""
        found = self._requests.validated(_ROBOTS, await self._requests.get("/robots"))
        return [stop.utime for stop in found.stopped.stops]

    async def order(
        self, order: Order, robot: str = "", reason: str = "", *, seen: Collection[int] | None = None
    ) -> OrderReport:
        """Give an operator's order to a robot, by its namespace, or to every one; return what came of it. A release
        names with ``seen`` the stops that it is about. A stop whose answer is lost is given again.

        Raises ``UnknownRobotError``, ``CallInDoubtError`` if the answer is lost, and as ``call`` does where nobody
        answers.
        """
        named = {} if seen is None else {"seen": list(seen)}
        body = {"robot": robot, "reason": reason, **named}
        if order != "/robots/stop":
            return await self._order(order, body, ANSWER_S)
        return await stop_until_answered(lambda left_s: self._order(order, body, left_s), ANSWER_S, NoAnswerError)

    async def _order(self, order: Order, body: Mapping[str, Any], timeout_s: float) -> OrderReport:
        try:
            response = await self._requests.post(order, body, timeout_s)
        except NoAnswerError as error:
            if not error.may_have_arrived:
                raise
            raise CallInDoubtError(f"{error}; {ORDER_IN_DOUBT[order]}") from error
        return self._requests.validated(_REPORT, self._requests.content(response))

    async def cancel(self, call_id: str, reason: str, *, robot: str | None = None) -> None:
        """See ``SkillGateway``. At a hub several robots may have chosen one id; ``robot`` says whose it is."""
        query = f"?{urlencode({'robot': robot})}" if robot else ""
        path = f"/calls/{quote(call_id, safe='')}/cancel{query}"
        self._requests.content(await self._requests.post(path, {"reason": reason}))

    async def cancel_calls(self, call_ids: Collection[str], reason: str) -> None:
        """See ``SkillGateway``."""
        ids = list(call_ids)
        errors: list[SkillError] = []
        for first in range(0, len(ids), MAX_ENDED_AT_ONCE):
            body = {"calls": ids[first : first + MAX_ENDED_AT_ONCE], "reason": reason, "wait_s": 0.0}
            try:
                self._requests.content(await self._requests.post("/calls/cancel", body))
            except SkillError as error:  # the others are asked all the same
                errors.append(error)
        if errors:
            raise errors[0]

    async def calls(self, *, open_only: bool = False) -> list[CallView]:
        """See ``SkillGateway``."""
        query = "?limit=1000&state=open" if open_only else "?limit=1000"
        return await self._requests.in_thread(self._all_calls, query)

    async def offset(self) -> int:
        """See ``SkillGateway``."""
        return self._requests.field(await self._requests.get("/healthz"), "offset", int)

    async def robot_orders(self) -> Mapping[str, int]:
        """See ``SkillGateway``."""
        return self._requests.validated(_ORDERS, await self._requests.get("/robots")).orders

    async def events(
        self, *, after: int, caller: str | None = None, call_id: str | None = None
    ) -> AsyncGenerator[JournalEntry, None]:
        """See ``SkillGateway``. Raises ``SseError`` if the bridge refuses (wrong token, not a bridge), and what
        says that it is ``gone``."""
        filters = {name: value for name, value in {"caller": caller, "call": call_id}.items() if value is not None}
        query = f"?{urlencode(filters)}" if filters else ""
        errors: list[Exception] = []

        def on_loss(problem: str) -> None:
            if (error := self._gone()) is not None:
                errors.append(error)
                client.request_stop()

        client = SseClient(
            f"{self.url}/tool_streams{query}",
            rng=self._random,
            headers=self._requests.headers,
            last_event_id=str(after),
            ping_s=self._ping_s,
            tls=self._tls,
            on_loss=on_loss,
        )
        async with contextlib.aclosing(client.events()) as events:
            async for event in events:
                entry = self._entry(event)
                if entry is not None:
                    yield entry
        if errors:
            raise errors[0]

    def close(self) -> None:
        """Cut what is under way and refuse new requests. Twice is fine."""
        self._requests.close()

    def _entry(self, event: SseEvent) -> JournalEntry | None:
        if event.type != _EVENT_TYPE:
            return None
        try:
            fields = parse_json(event.data)
            if not isinstance(fields, dict):
                raise ValueError(f"JSON of type {type(fields).__name__}, not an object")
            if not (event.id.isascii() and event.id.isdigit() and len(event.id) < 20):
                raise ValueError(f"the id {event.id[:50]!r} is no offset")
            return JournalEntry(int(event.id), ToolEvent.from_dict(fields))
        except ValueError as error:
            self.malformed += 1
            _log.warning("%s: bad event %s: %s", self.url, event.data[:100], error)
            return None

    async def _begun_once(self, body: Mapping[str, Any], wait_s: float = 0.0) -> requests.Response:
        """The response to a request for a new call, which begins once however often it arrives; the bridge may wait
        for ``wait_s`` before it answers."""
        keyed = {"idempotency_key": secrets.token_hex(8), **body}

        async def ask() -> requests.Response:
            response = await self._requests.post("/calls", keyed, self._requests.timeout_s + wait_s)
            self._requests.content(response)
            return response

        return await ask_until_answered(ask, IN_DOUBT)

    def _all_calls(self, query: str) -> list[CallView]:
        """Follow the pages, which lead from the newest calls to the oldest."""
        pages: list[list[CallView]] = []
        while len(pages) < _MAX_PAGES:
            response = self._requests.send("GET", f"/calls{query}")
            pages.append(self._requests.validated(_CALLS, self._requests.content(response)))
            older = urlsplit(response.links.get("next", {}).get("url", "")).query
            if not older:
                break
            query = f"?{older}"
        return [view for page in reversed(pages) for view in page]
