"""Sessions of MCP clients."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass, field

from dimos_streams.bridge.authority import MCP
from dimos_streams.bridge.mcp.messages import Id
from dimos_streams.tool_stream.event import MAX_NAME, ToolEvent
from dimos_streams.tool_stream.gateway import CallView

MAX_SESSIONS = 64
_MAX_REQUESTS = 256
_MAX_TOLD = 1000
_NEWS = frozenset({"update", "close", "gap"})


@dataclass(slots=True)
class Session:
    """What is kept of a client between its requests."""

    id: str
    caller: str
    """Of its calls."""
    place: int
    """Up to which it has been told news."""
    running: dict[Id, str] = field(default_factory=dict)
    """Calls by the requests that wait for them."""
    cancelled: dict[Id, None] = field(default_factory=dict)
    """Requests among those that the client has given up, and that get no response."""
    tools: tuple[str, ...] = ()
    """The skills that the client knows of."""
    told: OrderedDict[str, int] = field(default_factory=OrderedDict)
    """The last seq of a call that the client knows already; 0 if that is its answer, whichever event that was."""

    def begin(self, request: Id, call_id: str) -> None:
        """A request waits for a call."""
        if len(self.running) < _MAX_REQUESTS:
            self.running[request] = call_id
            self.cancelled.pop(request, None)

    def answered(self, request: Id, call: CallView) -> None:
        """A request is answered with a call as it is now."""
        while len(self.cancelled) > _MAX_REQUESTS:
            del self.cancelled[next(iter(self.cancelled))]
        self.running.pop(request, None)
        if call.state == "closed":
            self.told[call.call_id] = call.last_seq
        elif call.answer is not None:
            self.told[call.call_id] = 0
        while len(self.told) > _MAX_TOLD:
            self.told.popitem(last=False)

    def is_news(self, event: ToolEvent) -> bool:
        """Whether an event tells the client something; ask once for each event."""
        if event.type not in _NEWS:
            return False
        told = self.told.get(event.call_id)
        if told == 0:
            self.told[event.call_id] = event.seq
            return False
        return told is None or event.seq > told


class Sessions:
    """The newest sessions; the one that was silent longest gives way to a new one."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def open(self, client: str, place: int) -> Session:
        """A session for a client that calls itself so; news begin behind ``place``."""
        id = secrets.token_urlsafe(16)
        name = "".join(char for char in client if char.isprintable())[: MAX_NAME // 2] or "client"
        session = self._sessions[id] = Session(id, f"{MCP}{name}/{id[:6]}", place)
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def get(self, id: str) -> Session | None:
        """A session, None if it was ended or forgotten."""
        session = self._sessions.get(id)
        if session is not None:
            self._sessions.move_to_end(id)
        return session

    def end(self, id: str) -> None:
        """Forget a session. Its calls go on."""
        self._sessions.pop(id, None)

    def __len__(self) -> int:
        return len(self._sessions)
