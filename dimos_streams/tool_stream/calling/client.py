"""The client by which a running skill checks, runs, begins and cancels other skills over the bus."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from dimos_streams import clock
from dimos_streams.bus import Bus
from dimos_streams.common.json.writing import json_without_secrets
from dimos_streams.common.names import MAX_NAME, is_name
from dimos_streams.errors import (
    CallRejectedError,
    MessageError,
    SkillArgumentError,
    SkillError,
    SkillRunError,
    UnknownSkillError,
)
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.skill import OnUpdate
from dimos_streams.tool_stream.arguments.plain_arguments import plain_arguments
from dimos_streams.tool_stream.arguments.schemas import check_arguments
from dimos_streams.tool_stream.audience import refusal
from dimos_streams.tool_stream.calling.call_request import RepeatedRequest
from dimos_streams.tool_stream.calling.children import ChildStream, ChildStreams
from dimos_streams.tool_stream.calling.withdrawal import named_reason, request_end
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.family import child_id, continuation_id
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.protocol.bounds import MAX_ARGUMENTS
from dimos_streams.tool_stream.protocol.call_ids import is_call_id
from dimos_streams.tool_stream.protocol.channels import CALLS
from dimos_streams.tool_stream.protocol.json_fields import arguments_object
from dimos_streams.tool_stream.sending.call_writer import CallWriter

_INTRODUCTION_S = 1.0
_LOOK_S = 0.25
_SILENT_S = 1.0
"""The time, in seconds, without an event or a heartbeat about a child after which it is asked for again."""
_GIVEN_UP_S = 90.0
"""The time, in seconds, without a word about a child after which it is given up. A bridge that lives gives it up
sooner."""
_CHILD_END_WAIT_S = 1.0
"""Maximum wait, in seconds, for the end of a child."""


class BusSkillClient:
    """A ``SkillClient`` on behalf of one running call."""

    def __init__(
        self, bus: Bus, directory: ModuleDirectory, streams: ChildStreams, own: CallWriter, *, read_only: bool
    ) -> None:
        """``own`` is the running call's stream. A skill that is declared ``read_only`` is held to it: whatever it
        wants others to do raises ``SkillError``."""
        self._bus = bus
        self._directory = directory
        self._streams = streams
        self._own = own
        self._read_only = read_only
        self._call_id = own.call_id
        self._numbers = itertools.count(1)
        self._children: dict[str, None] = {}
        """Children that are not known to have closed."""

    async def check(self, skill: str, arguments: Mapping[str, Any]) -> None:
        """See ``SkillClient``. A module that has only just started is waited for a moment."""
        self._check_may("begin", skill)
        plain = plain_arguments(skill, arguments)
        deadline = clock.monotonic() + _INTRODUCTION_S
        while True:
            try:
                info = self._directory.find(skill, asked_by=self._own.module)[1]
                break
            except UnknownSkillError:
                if clock.monotonic() >= deadline:
                    raise
                self._directory.hear_all()
                await asyncio.sleep(0.05)
        why = refusal(skill, info.audience, caller=self._own.caller, parent=self._call_id)
        if why:
            raise CallRejectedError(why)
        check_arguments(info, plain)

    async def start(
        self,
        skill: str,
        arguments: Mapping[str, Any],
        *,
        on_wait: Callable[[], Awaitable[None]] | None = None,
    ) -> str:
        """See ``SkillClient``. The broker resolves the skill, has the call reviewed and takes the leases."""
        self._check_may("begin", skill)
        call_id = continuation_id(self._call_id, next(self._numbers))
        try:
            await self._request(self._asked(call_id, skill, arguments)).begun(on_wait)
        except CallRejectedError:
            raise
        except BaseException:
            self._withdraw(call_id)
            raise
        return call_id

    async def run(
        self,
        skill: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        on_update: OnUpdate | None = None,
        on_wait: Callable[[], Awaitable[None]] | None = None,
        quiet: bool = True,
        **named: Any,
    ) -> Any:
        """See ``SkillClient``."""
        self._check_may("run", skill)
        call_id = child_id(self._call_id, next(self._numbers))
        try:
            message = self._asked(call_id, skill, {**(arguments or {}), **named})
        except SkillArgumentError as error:
            raise SkillRunError(str(error), skill=skill, outcome=Outcome.REJECTED, call_id=call_id) from error
        close = await self._run_child(message, on_update, on_wait, quiet=quiet)
        if close.outcome is Outcome.COMPLETED:
            return close.data.get("result")
        outcome, result = str(close.outcome), close.data.get("result")
        raise SkillRunError(close.text, skill=skill, outcome=outcome, call_id=call_id, child_result=result)

    def end_children(self) -> None:
        """End whatever the call still runs, because the call ends. The bridge sees to it, too."""
        for call_id in self._children:
            self._withdraw(call_id)
        self._children.clear()

    async def _run_child(
        self,
        message: SkillCall,
        on_update: OnUpdate | None,
        on_wait: Callable[[], Awaitable[None]] | None,
        *,
        quiet: bool,
    ) -> ToolEvent:
        """Begin a child, follow it, and return its close. The child is ended if this ends otherwise."""
        call_id, skill = message.call_id, message.skill
        stream = self._streams.open(call_id)
        self._children[call_id] = None
        try:
            try:
                await self._request(message).begun(on_wait)
            except CallRejectedError as error:
                self._children.pop(call_id, None)
                raise SkillRunError(str(error), skill=skill, outcome=Outcome.REJECTED, call_id=call_id) from error
            close = await self._followed(message, stream, on_update, quiet=quiet)
            self._children.pop(call_id, None)  # it may have been ended meanwhile, with the call itself
            return close
        except BaseException:
            await self._ended(call_id, stream)
            raise
        finally:
            self._streams.forget(call_id)

    async def _followed(
        self, message: SkillCall, stream: ChildStream, on_update: OnUpdate | None, *, quiet: bool
    ) -> ToolEvent:
        """Pass on what a child says until it has closed; return the close. Raises ``SkillRunError`` if nothing is
        heard of it."""
        asked_at = clock.monotonic()
        while True:
            await stream.changed(_LOOK_S)
            events, dropped = stream.read()
            if dropped:
                await self._pass_on(
                    f"{dropped} updates are lost: they were read too slowly", {}, on_update, quiet=quiet
                )
            for event in events:
                if event.type == "close":
                    return event
                if event.type != "open":
                    progress = event.type == "progress"
                    await self._pass_on(event.text, event.data, on_update, quiet=quiet, progress=progress)
            now = clock.monotonic()
            if now - stream.heard_at > _GIVEN_UP_S:
                text = f"nothing was heard of call {message.call_id!r} of {message.skill!r} for {_GIVEN_UP_S:g} s"
                raise SkillRunError(text, skill=message.skill, outcome=Outcome.LOST, call_id=message.call_id)
            if now - max(stream.heard_at, asked_at) > _SILENT_S:
                asked_at = now  # the bridge says how it ended, or has its module repeat itself
                self._bus.publish(CALLS, encode(message))

    async def _pass_on(
        self, text: str, data: Mapping[str, Any], on_update: OnUpdate | None, *, quiet: bool, progress: bool = False
    ) -> None:
        if on_update is not None:
            waiting = on_update(text, data)
            if waiting is not None:
                await waiting
        if not quiet and progress:
            self._own.progress(text, data)
        elif not quiet:
            await self._own.update(text, data)

    async def _ended(self, call_id: str, stream: ChildStream) -> None:
        """End a child that nobody wants any more, and give it a moment: what it holds should be free then."""
        if call_id not in self._children:
            return
        del self._children[call_id]
        self._withdraw(call_id)
        deadline = clock.monotonic() + _CHILD_END_WAIT_S
        while stream.close is None and clock.monotonic() < deadline:
            await stream.changed(deadline - clock.monotonic())
            stream.read()

    def _asked(self, call_id: str, skill: str, arguments: Mapping[str, Any]) -> SkillCall:
        """Return the request for a call on behalf of this one's caller. Raises as ``plain_arguments`` does."""
        return SkillCall(
            utime=clock.utime(),
            call_id=call_id,
            skill=skill,
            caller=self._own.caller,
            parent=self._call_id,
            arguments_json=json_without_secrets(plain_arguments(skill, arguments)).decode(),
        )

    def _request(self, message: SkillCall) -> RepeatedRequest:
        """Return a request to be repeated. Raises ``CallRejectedError`` for one that the bridge would skip as
        unreadable."""
        skill = message.skill
        if not is_name(skill):
            try:
                self._directory.find(skill, asked_by=self._own.module)
            except UnknownSkillError as error:
                raise CallRejectedError(str(error)) from error
        if not is_call_id(message.call_id):
            raise CallRejectedError(
                f"{skill!r} can't be begun: the chain of calls that begin each other is too long (the id of the next "
                f"one has {len(message.call_id)} characters, {MAX_NAME} are possible)"
            )
        try:
            arguments_object(message.arguments_json, CALLS, message.msg_name)
        except MessageError as error:
            raise CallRejectedError(f"arguments of {skill!r} can't be read: {error.why}") from error
        size = len(message.arguments_json.encode())
        if size > MAX_ARGUMENTS:
            raise CallRejectedError(f"arguments of {skill!r}: they have {size} bytes, {MAX_ARGUMENTS} are possible")
        self._directory.hear_all()  # the call may be anybody's to run
        return RepeatedRequest(self._bus, message, believes=self._streams.believes, alone=lambda: self._own.alone)

    async def cancel(self, call_id: str, reason: str) -> None:
        """See ``SkillClient``. The call closes with a reason that names for whom it was ended."""
        self._check_may("end call", call_id)
        request_end(self._bus, call_id, named_reason(reason, self._own.caller))

    def _check_may(self, what: str, which: str) -> None:
        if self._read_only:
            raise SkillError(f"skill {self._own.skill!r} can't {what} {which!r}: it is declared read_only")

    def _withdraw(self, call_id: str) -> None:
        """End a call that nobody waits for any more: it may still begin, and must not."""
        reason = f"call {self._call_id!r}, which asked for it, does not want it any more"
        request_end(self._bus, call_id, reason)
