"""Sessions of MCP clients: who calls, and which requests wait for calls. What was sent to whom is not kept."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
import secrets
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from dimos_streams import clock
from dimos_streams.bridge.calls.authority import MCP
from dimos_streams.bridge.mcp.messages import INVALID_PARAMS, INVALID_REQUEST, Id, RpcError, is_id
from dimos_streams.common.names import MAX_NAME, as_name, is_name
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.common.secrets import has_secret
from dimos_streams.errors import DimosStreamsError
from dimos_streams.skill import SkillInfo

MAX_SESSIONS = 256
MAX_REQUESTS = 256
"""Maximum number of requests of one session that wait for calls, of those that are over and remembered, and of
requests without a session that are worked on at a time."""
SESSIONLESS = f"{MCP}without-session"
"""The caller of the calls of all clients that keep no session."""
_KEPT = 100
"""Maximum length of a reason for which a request was given up, in characters, as far as it is kept: all sessions
together may have a hundred thousand."""
EARLY_S = 30.0
"""Time, in seconds, for which a cancellation is kept that has overtaken its request, on another connection."""
MAX_STREAMS = 2
"""Maximum number of ``GET`` streams of one session; a client that has lost one opens the next before the bridge has
noticed."""
MAX_ANSWERS = 32
"""Maximum number of ``GET`` streams on which one session waits for answers: those of others have places then, too."""
MAX_ALL_STREAMS = 64
"""Maximum number of ``GET`` streams of all sessions."""
_MAX_CLIENT = MAX_NAME // 2
_ID = re.compile(rf"(?P<client>\S{{1,{_MAX_CLIENT}}})\.[0-9a-f]{{32}}")
"""The form of a session's id. It has the client's name, so that a server which does not know the session can go on
with it. It gives nobody a right: clients choose their names."""


class SessionsBusyError(DimosStreamsError):
    """Raised if there are as many sessions, or requests without one, as there may be, and each is at work."""

    def __init__(self, busy: str = f"all {MAX_SESSIONS} sessions are at work; end one (DELETE /mcp)") -> None:
        super().__init__(f"{busy}, or try again later")


@dataclass(slots=True, eq=False)
class Request:
    """A client's request: for a call of a skill, or one that begins none."""

    call_id: str = ""
    """The id of the call; empty until the call has begun."""
    cursor: int = 0
    """The offset behind which is all that the call says and that is not in the response."""
    cancelled: str = ""
    """The beginning of the reason why the client has given it up; it then gets no response. Empty if it has not."""
    answered: bool = False
    reading: asyncio.Timeout | None = None
    """The scope of a request that only reads: it ends when the client gives the request up."""

    def give_up(self, reason: str) -> None:
        """Note why the client has given it up."""
        self.cancelled = reason[:_KEPT]


@dataclass(slots=True)
class Session:
    """The state of a client between its requests."""

    id: str
    caller: str
    """The caller of its calls: the same in each session of a client of that name."""
    skills: tuple[SkillInfo, ...] = ()
    """The skills as the client knows them."""
    streams: int = 0
    """Number of open ``GET`` streams."""
    answers: int = 0
    """Number of answers that the client waits for on another stream than that of the request."""
    _asked: dict[Request, Id] = field(default_factory=dict)
    """The requests that begin no call and are being answered."""
    _early: NewestEntries[Id, tuple[str, float]] = field(default_factory=lambda: NewestEntries(MAX_REQUESTS))
    """The requests that were cancelled before they came, with the reason, and the time until which that counts."""
    _running: dict[Id, Request] = field(default_factory=dict)
    _over: NewestEntries[Id, Request] = field(default_factory=lambda: NewestEntries(MAX_REQUESTS))
    """The newest requests that are over, answered or not."""

    @property
    def busy(self) -> bool:
        """True if the client waits for something."""
        return bool(self._running or self.streams or self.answers or self._asked)

    @contextlib.contextmanager
    def request(self, id: Id) -> Iterator[Request]:
        """A request while it is worked on. The newest are remembered after that: one that came again acts no second
        time, and one that ends without an answer, because the client has left, can still be cancelled. Raises
        ``RpcError``."""
        if self.knows(id):
            what = "is being worked on" if id in self._running else "was made before in this session"
            raise RpcError(INVALID_REQUEST, f"request {id!r} {what}; each needs an id of its own")
        if len(self._running) >= MAX_REQUESTS:
            raise RpcError(INVALID_REQUEST, f"{MAX_REQUESTS} requests of this session wait already; cancel one")
        reason, until = self._early.pop(id, ("", 0.0))
        request = self._running[id] = Request(cancelled=reason if clock.monotonic() <= until else "")
        try:
            yield request
        finally:
            del self._running[id]
            self._over[id] = request

    def knows(self, id: Id) -> bool:
        """Return whether a request for a call is worked on, or one of the newest that are over, answered or not."""
        return id in self._running or id in self._over

    def awaits(self, id: Id, call_id: str) -> Request:
        """The request that has begun a call, for whose answer the client still waits. It can be cancelled, also if
        another server has answered it, or would have, or its answer got lost."""
        request = self._begun(id, call_id)
        if request is None:
            request = Request(call_id)
            if not self.knows(id):
                self._over[id] = request
        request.answered = False
        return request

    def has_given_up(self, id: Id, call_id: str) -> bool:
        """Return whether the client is known to have cancelled the request that has begun a call."""
        request = self._begun(id, call_id)
        return request is not None and bool(request.cancelled)

    def _begun(self, id: Id, call_id: str) -> Request | None:
        request = self._running.get(id) or self._over.get(id)
        return request if request is not None and request.call_id == call_id else None

    def key_of(self, id: Id) -> str | None:
        """The idempotency key of the call of a request: one that comes again after the server was restarted begins no
        second call. It gives away no session. None without a session, whose ids are nobody's own."""
        if not self.id:
            return None
        return f"mcp-{hashlib.blake2b(f'{self.id} {id!r}'.encode(), digest_size=16).hexdigest()}"

    @contextlib.contextmanager
    def stream(self) -> Iterator[None]:
        """A ``GET`` stream while it is open."""
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1

    @contextlib.contextmanager
    def answer(self) -> Iterator[None]:
        """An answer while the client waits for it on another stream than that of the request."""
        self.answers += 1
        try:
            yield
        finally:
            self.answers -= 1

    @contextlib.contextmanager
    def own(self, id: Id) -> Iterator[Request]:
        """A request that begins no call, while it is answered."""
        request = Request()
        self._asked[request] = id
        try:
            yield request
        finally:
            del self._asked[request]

    def cancel_early(self, id: Id, reason: str) -> None:
        """Remember for a while that a request was cancelled that has not come, if it ever does."""
        if not is_id(id):
            return  # there is no such request
        self._early[id] = reason[:_KEPT], clock.monotonic() + EARLY_S

    def find(self, id: Id) -> Request | None:
        """A request that has not been answered; None if there is none."""
        asked = (request for request, its_id in self._asked.items() if its_id == id)
        request = self._running.get(id) or next(asked, None) or self._over.get(id)
        return None if request is None or request.answered else request


class Sessions:
    """Sessions by id. The one that was silent longest gives way to a new one, unless its client waits."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._ended: NewestEntries[str, None] = NewestEntries(MAX_SESSIONS)
        """The newest sessions that their clients have ended."""
        self._passing = 0
        """Number of requests without a session that are being answered."""

    @contextlib.contextmanager
    def passing(self) -> Iterator[Session]:
        """A session for one request of a client that keeps none. Raises ``SessionsBusyError``."""
        if self._passing >= MAX_REQUESTS:
            raise SessionsBusyError(
                f"{MAX_REQUESTS} requests without a session wait already; begin one (`initialize`)"
            )
        self._passing += 1
        try:
            yield Session("", SESSIONLESS)
        finally:
            self._passing -= 1

    def open(self, client: str) -> Session:
        """Open a session for a client that calls itself ``client``: any text, of which a name is made. Raises
        ``SessionsBusyError``, and ``RpcError`` for a text that has a secret in it: redacted, it could be another
        client's, and give away that one's calls."""
        name = as_name(client, _MAX_CLIENT) if client else "client"
        if has_secret(client) or has_secret(name):
            text = "initialize can't take these parameters: params.clientInfo.name: it has a secret of this run in it"
            raise RpcError(INVALID_PARAMS, f"{text}; valid is any other text")
        return self._keep(f"{name}.{secrets.token_hex(16)}", name)

    def get(self, id: str) -> Session | None:
        """A session, also one that is not known any more, or was begun with a server before this one: few clients
        begin anew where theirs has gone. None if it was ended, or the id is of no session. Raises
        ``SessionsBusyError``."""
        session = self._sessions.get(id)
        if session is not None:
            self._sessions.move_to_end(id)
            return session
        form = _ID.fullmatch(id)
        if form is None or id in self._ended or not is_name(form["client"]) or has_secret(id):
            return None
        return self._keep(id, form["client"])

    def end(self, id: str) -> None:
        """Forget a session. Its calls go on."""
        self._sessions.pop(id, None)
        self._ended[id] = None

    def _keep(self, id: str, client: str) -> Session:
        if len(self._sessions) >= MAX_SESSIONS:
            idle = next((id for id, session in self._sessions.items() if not session.busy), None)
            if idle is None:
                raise SessionsBusyError
            del self._sessions[idle]
        session = self._sessions[id] = Session(id, f"{MCP}{client}")
        return session

    def __contains__(self, session: Session) -> bool:
        return self._sessions.get(session.id) is session

    def __len__(self) -> int:
        return len(self._sessions)
