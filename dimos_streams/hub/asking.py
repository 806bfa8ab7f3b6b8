"""Asks a robot's bridge something, by a command, and waits for the answer."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

from dimos_streams import clock
from dimos_streams.common.json.reading import parse_json
from dimos_streams.common.json.writing import json_text
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.errors import DimosStreamsError
from dimos_streams.fleet.commands import Method, Role
from dimos_streams.fleet.protocol import DEFAULT_EXPIRY_S
from dimos_streams.hub.storage.rows import CommandState, NewCommand, StorageUnavailableError
from dimos_streams.hub.storage.storage import HubStorage
from dimos_streams.hub.threads import in_thread, within
from dimos_streams.hub.wakeup import Wakeup
from dimos_streams.tool_stream.protocol.call_ids import is_call_id

_EXPIRES_IN_S = DEFAULT_EXPIRY_S
_ANSWER_S = 15.0
"""Time, in seconds, of waiting for an answer after a command's expiry, if whoever asks does not say how long."""
_MARGIN_S = 5.0
"""Time, in seconds, for which an answer is awaited beyond the time that the client said it waits."""
_REFUSAL_S = 2.0
"""Time, in seconds, that is left to tell a client, after a command has expired, that it was not carried out."""
_LEAST_S = 2.0
"""Minimum time, in seconds, for a command to reach its robot, even if its client waits for less."""
ORDER_WAITS_S = 5.0
"""Maximum time, in seconds, of a look-up for an order: an operator who can't stop a robot this way has to learn it
soon."""
_ENDS = (
    "the hub ends: nobody here waits for the robot's answer any more; the same request with the same idempotency key,"
    " at another hub or when this one is back, asks for it"
)

_log = LimitedLog(logging.getLogger(__name__), period_s=10.0)


class CommandRefusedError(DimosStreamsError):
    """Raised if the hub does not take a command: another one has its key, or too many wait."""


class RobotUnreachableError(DimosStreamsError):
    """Raised if a command has expired before its robot took it. It was not carried out, and will not be."""


class HubEndsError(DimosStreamsError):
    """Raised if the hub ends, and waits for no answer any more."""


class RobotSilentError(DimosStreamsError):
    """Raised if a command was sent, and nobody knows what became of it."""


@dataclass(frozen=True, slots=True)
class BridgeRequest:
    """A request for a robot's bridge."""

    robot: str
    method: Method
    path: str
    body: Mapping[str, Any] | None = None
    asked_by: str = "operator"
    role: Role = "operator"
    key: str | None = None
    """The key that makes it one and the same request; without it each is another one."""
    lease_wait_s: float = 0.0
    """Maximum time, in seconds, that a call may wait for its resources before it begins."""
    timeout_s: float | None = None
    """Maximum time, in seconds, that the bridge is to wait before it answers; None if it was not told."""
    asked_at: float = field(default_factory=clock.steady)
    """The time at which it was asked for, on ``clock.steady``: whatever holds it up from then on counts."""

    @property
    def within_s(self) -> float:
        """The time, in seconds, that the caller waits for the answer altogether."""
        if self.timeout_s is None:
            return _EXPIRES_IN_S + self.lease_wait_s + _ANSWER_S
        return self.lease_wait_s + self.timeout_s + _MARGIN_S

    @property
    def expires_in_s(self) -> float:
        """Seconds after which the robot must not begin it any more; that is before the caller stops waiting."""
        expires_in_s = min(_EXPIRES_IN_S, self.within_s - min(_REFUSAL_S, self.within_s / 2))
        if self.timeout_s is None:
            return expires_in_s
        return min(expires_in_s, self.lease_wait_s + max(self.timeout_s, _LEAST_S))


@dataclass(frozen=True, slots=True)
class BridgeReply:
    """The answer of a robot's bridge."""

    status: int
    body: Any
    headers: dict[str, str]
    doubled: bool = False
    """True if two robots call themselves so, of which one has answered."""

    @property
    def call_id(self) -> str | None:
        """The id of the call that it is about; None if it names none."""
        call_id = self.body.get("call_id") if isinstance(self.body, dict) else None
        return call_id if isinstance(call_id, str) and is_call_id(call_id) else None


class Asker:
    """Gives commands and waits for what becomes of them. Use from the loop only."""

    def __init__(self, storage: HubStorage, executor: Executor) -> None:
        self._storage = storage
        self._executor = executor
        self._waiting: dict[int, list[asyncio.Future[CommandState]]] = {}
        self._wakeup = Wakeup()
        self._ended = False

    def wake(self) -> None:
        """Note that there may be an answer."""
        self._wakeup.wake()

    def end(self) -> None:
        """Wait for nothing any more: whoever waits is told so. Twice is fine."""
        self._ended = True
        for futures in self._waiting.values():
            for future in futures:
                if not future.done():
                    future.set_exception(HubEndsError(_ENDS))

    async def ask(self, request: BridgeRequest) -> BridgeReply:
        """Give the command, and return the bridge's reply.

        Raises ``CommandRefusedError``, ``RobotUnreachableError``, ``RobotSilentError``, ``HubEndsError``,
        ``StorageUnavailableError``.
        """
        new = NewCommand(
            robot=request.robot,
            key=request.key or secrets.token_urlsafe(16),
            asked_by=request.asked_by,
            role=request.role,
            method=request.method,
            path=request.path,
            body=json_text(request.body),
            expires_in_s=request.expires_in_s,
        )
        async with within(request.expires_in_s):
            id = await in_thread(self._executor, self._storage.commands.give, new, request.asked_at)
        if isinstance(id, str):
            raise CommandRefusedError(id)
        state = await self._outcome(id, request.within_s)
        if state is None:
            state = await self._last_state(id)
        return _reply(request, state)

    async def run(self) -> None:
        """Look for answers, until cancelled."""
        while True:
            if self._waiting:
                try:
                    states = await in_thread(self._executor, self._storage.commands.states, list(self._waiting))
                except StorageUnavailableError as error:
                    _log.warning("answers of robots can't be read: %s", error)
                except Exception:  # whoever asks later must not wait in vain
                    _log.exception("answers of robots can't be read because of a defect")
                else:
                    self._resolve(states)
            await self._wakeup.wait()

    async def _outcome(self, id: int, within_s: float) -> CommandState | None:
        if self._ended:
            raise HubEndsError(_ENDS)
        future: asyncio.Future[CommandState] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(id, []).append(future)
        self.wake()
        try:
            async with asyncio.timeout(within_s):
                return await future
        except TimeoutError:
            return None
        finally:
            waiting = self._waiting.get(id, [])
            if future in waiting:
                waiting.remove(future)
            if not waiting:
                self._waiting.pop(id, None)

    async def _last_state(self, id: int) -> CommandState | None:
        """The state of a command after the wait for its answer; None if it is forgotten or the database can't be
        read, in which case the robot may have carried it out."""
        try:
            async with within(ORDER_WAITS_S):
                return (await in_thread(self._executor, self._storage.commands.states, [id])).get(id)
        except StorageUnavailableError as error:
            _log.warning("what became of command %d can't be read: %s", id, error)
            return None

    def _resolve(self, states: Mapping[int, CommandState]) -> None:
        for id, state in states.items():
            never_sent = not state.sent and state.left_s <= 0
            if state.outcome is None and not never_sent:
                continue
            for future in self._waiting.get(id, ()):
                if not future.done():
                    future.set_result(state)


def _reply(request: BridgeRequest, state: CommandState | None) -> BridgeReply:
    """The reply to a request, from the state of its command; None if nobody knows it. Raises as ``ask`` does."""
    if state is None or (state.outcome is None and (state.sent or state.left_s > 0)):
        raise RobotSilentError(
            f"the command was sent to robot {request.robot!r}, and it has not answered: nobody knows whether it"
            " was carried out; the same request with the same idempotency key asks again"
        )
    if state.outcome is None:
        raise RobotUnreachableError(
            f"robot {request.robot!r} did not take the command within {request.expires_in_s:g} s: it was not"
            " carried out, and will not be"
        )
    if state.outcome == "expired":
        raise RobotUnreachableError(
            f"the command reached robot {request.robot!r} too late: it was not carried out, and will not be"
        )
    return BridgeReply(state.status, parse_json(state.body), parse_json(state.headers), state.doubled)
