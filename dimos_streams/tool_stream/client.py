"""How a running skill checks, begins and cancels other skills over the bus."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any

from dimos_streams import clock
from dimos_streams.bus import Bus
from dimos_streams.errors import CallRejectedError, MessageError, SkillError, UnknownSkillError
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCall, SkillCancel
from dimos_streams.tool_stream.directory import ModuleDirectory, check_arguments
from dimos_streams.tool_stream.event import CALLS, CANCELS, EVENTS, Outcome, json_text
from dimos_streams.tool_stream.wire import unpack_event

_REPEAT_S = 0.25
_TAKEN_WITHIN_S = 5.0
_INTRODUCTION_S = 1.0


class BusSkillClient:
    """A ``SkillClient`` on behalf of one running call."""

    def __init__(self, bus: Bus, directory: ModuleDirectory, *, call_id: str, caller: str) -> None:
        self._bus = bus
        self._directory = directory
        self._call_id = call_id
        self._caller = caller
        self._numbers = itertools.count(1)

    async def check(self, skill: str, arguments: Mapping[str, Any]) -> None:
        """See ``SkillClient``. A module that has only just started is waited for a moment."""
        deadline = clock.monotonic() + _INTRODUCTION_S
        while True:
            try:
                check_arguments(self._directory.find(skill)[1], arguments)
                return
            except UnknownSkillError:
                if clock.monotonic() >= deadline:
                    raise
                await asyncio.sleep(0.05)

    async def start(self, skill: str, arguments: Mapping[str, Any]) -> str:
        """See ``SkillClient``. The broker resolves the skill and takes the leases."""
        call_id = f"{self._call_id}.{next(self._numbers)}"
        message = SkillCall(
            utime=clock.utime(),
            call_id=call_id,
            skill=skill,
            caller=self._caller,
            parent=self._call_id,
            arguments_json=json_text(arguments),
        )
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        subscription = self._bus.subscribe(EVENTS, lambda channel, data: _watch(call_id, channel, data, begun))
        try:
            for _ in range(int(_TAKEN_WITHIN_S / _REPEAT_S)):
                self._bus.publish(CALLS, encode(message))
                await asyncio.wait([begun], timeout=_REPEAT_S)
                if begun.done():
                    begun.result()
                    return call_id
        finally:
            subscription.close()
        raise SkillError(f"nobody took the call of {skill!r} within {_TAKEN_WITHIN_S:g} s; does a bridge run?")

    async def cancel(self, call_id: str, reason: str) -> None:
        """See ``SkillClient``."""
        self._bus.publish(CANCELS, encode(SkillCancel(utime=clock.utime(), call_id=call_id, reason=reason)))


def _watch(call_id: str, channel: str, data: bytes, begun: asyncio.Future[None]) -> None:
    """Settle ``begun`` by the first events of a call: it runs, or it was rejected."""
    try:
        event = unpack_event(data, channel)
    except MessageError:  # the receiver of the bridge counts and reports it
        return
    if event.call_id != call_id or begun.done():
        return
    if event.outcome is Outcome.REJECTED:
        begun.set_exception(CallRejectedError(event.text))
    elif event.type != "open" or not event.data.get("refused"):
        begun.set_result(None)
