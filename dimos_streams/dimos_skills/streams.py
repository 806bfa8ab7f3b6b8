"""The messages of tools, sorted by the calls that they belong to."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import Iterator

from dimos_streams import clock
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.dimos_skills.notices import ToolNotice

MAX_WAITING = 500
"""The largest number of a call's messages that wait to be passed on; of more the oldest are left out and counted."""
STALE_STOP_S = 0.5
"""Seconds within which messages may follow a stop that came before any message of a call: if they do, it was that of
an earlier use of its tool."""
_REMEMBERED = 200


class DimosToolStream:
    """The messages of one call, until its tool says that it has ended."""

    def __init__(self, token: str, tool: str) -> None:
        self.token = token
        self.changed = asyncio.Event()
        """An event that is set by whatever happens, for the call, which waits for it."""
        self.missed = 0
        """The number of messages that were left out since this was looked at."""
        self.heard = False
        """True if anything has come that bears this call's token."""
        self.lost_at: float | None = None
        """The time on the loop's clock at which the connection was lost that brings its messages, or None while they
        come."""
        self._names = {tool}
        self._waiting: deque[ToolNotice] = deque()
        self._stopped_at: float | None = None

    def has_ended(self) -> bool:
        """Return whether the tool has said that it has ended, and nothing followed."""
        if self._stopped_at is None:
            return False
        return self.heard or clock.monotonic() - self._stopped_at >= STALE_STOP_S

    def next(self) -> ToolNotice | None:
        """Return the next message, or None if there is none."""
        return self._waiting.popleft() if self._waiting else None

    def is_of(self, tool: str) -> bool:
        """Return whether it is the stream of a tool; dimos' name for a tool in messages may be another one."""
        return tool in self._names

    def say(self, notice: ToolNotice) -> None:
        if notice.token == self.token:
            self.heard = True
            self._names.add(notice.tool)
        self.lost_at = self._stopped_at = None
        if len(self._waiting) == MAX_WAITING:
            self._waiting.popleft()
            self.missed += 1
        self._waiting.append(notice)
        self.changed.set()

    def stop(self) -> None:
        self.lost_at, self._stopped_at = None, clock.monotonic()
        self.changed.set()

    def lose(self) -> None:
        if self.lost_at is None:
            self.lost_at = clock.monotonic()
        self.changed.set()


class ToolStreams:
    """The streams of all calls that run, by the tokens that dimos was given for them."""

    def __init__(self) -> None:
        self._streams: dict[str, DimosToolStream] = {}
        self._ended = NewestEntries[str, str](_REMEMBERED)
        """The tools of the newest calls that are over, by token."""

    @contextlib.contextmanager
    def open(self, token: str, tool: str) -> Iterator[DimosToolStream]:
        """The stream of a call while it runs."""
        stream = self._streams[token] = DimosToolStream(token, tool)
        try:
            yield stream
        finally:
            del self._streams[token]
            self._ended[token] = tool

    def take(self, notice: ToolNotice) -> str:
        """Give a notice to the calls that it is for; return the tool's name if its call was over, else an empty text.

        dimos has one stream for a tool that goes on, for all its callers: a second caller hears it under the first
        one's token, or under none. A notice for nobody here is for other clients.
        """
        own = self._streams.get(notice.token)
        if own is not None:
            own.say(notice)
            return ""
        joined = self._named(notice.tool)
        for stream in joined:
            if notice.kind == "stopped":
                stream.stop()
            elif not stream.heard:
                stream.say(notice)
        return "" if joined else self._ended.get(notice.token, "")

    def lose(self) -> None:
        """Note that the connection is lost by which all messages come."""
        for stream in self._streams.values():
            stream.lose()

    def abandon(self) -> None:
        """Let calls that wait for a tool to end wait no longer, since nothing more will come."""
        for stream in self._streams.values():
            stream.lost_at = -math.inf
            stream.changed.set()

    def wake(self) -> None:
        """Have every call look at what has changed besides."""
        for stream in self._streams.values():
            stream.changed.set()

    def _named(self, tool: str) -> list[DimosToolStream]:
        return [stream for stream in self._streams.values() if stream.is_of(tool)]
