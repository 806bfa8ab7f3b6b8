"""One call while it runs: what the skill sees of it, and what its host notes of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

from dimos_streams import clock
from dimos_streams.common.process.threads import check_thread
from dimos_streams.skill import Call, OnLoss, SkillClient
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.hosting.results import payload_size
from dimos_streams.tool_stream.hosting.unawaited import Unawaited
from dimos_streams.tool_stream.protocol.bounds import MAX_PAYLOAD
from dimos_streams.tool_stream.protocol.close_data import NOT_RUN, STOPPED, TO_END, UNAWAITED
from dimos_streams.tool_stream.sending.call_writer import CallWriter

_MAX_TEXT = 2000
_MAX_TO_END = 500
"""Maximum length of the reason for which a call that failed was to end, in characters: it stands in the close twice,
beside the skill's own words."""


class RunningCall(Call):
    """The ``Call`` that a hosted skill gets."""

    def __init__(
        self,
        writer: CallWriter,
        arguments: Mapping[str, Any],
        parent: str,
        skills: SkillClient,
        *,
        moves: bool,
        on_loss: OnLoss | None,
    ) -> None:
        """``on_loss`` is what the caller said about it, or None if nothing."""
        self.id, self.skill, self.module, self.caller = writer.call_id, writer.skill, writer.module, writer.caller
        self.parent = parent
        self.arguments = arguments
        self.skills = skills
        self.loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self.unsent = {}
        self.writer = writer
        self.task: asyncio.Task[None]
        """The task that runs its skill, which its host begins."""
        self.cancel_reason: str | None = None
        self.limit: asyncio.Timeout | None = None
        """The time limit under which its skill runs; None before that begins."""
        self.overdue = ""
        """The place where its skill waits though it was to end long ago, for its close; empty if it is not late."""
        self.ending_s: float | None = None
        """The time, in seconds, for which its host has seen it go on after it was to end; None before that."""
        self.moves, self.on_loss = moves, on_loss
        self.disowned_at: float | None = None
        """The time on the loop's clock since which nobody answers for it; None while somebody does."""
        self.stands_since: float | None = None
        """The time on the loop's clock since which it must not move the robot: nobody answers for it, or an operator
        has stopped the robot. None while it may."""
        self.unanswered_s = 0.0
        """The time, in seconds, for which its host has heard no acknowledgement of it."""
        self.work: asyncio.Future[Any] | None = None
        """The work that runs in a thread for it, which goes on when the call is cancelled; None if there is none."""
        self.may_have_run = False
        """True once its skill was called, or waits for a thread."""
        self.unawaited: Unawaited | None = None
        """The awaitables that its skill did not await; None before that begins."""
        self._begun_at = clock.monotonic()
        self._final: tuple[Outcome, str] | None = None

    async def update(self, text: str, **data: Any) -> None:
        """See ``Call``."""
        self._check_thread()
        await self.writer.update(text, data)

    def progress(self, text: str, **data: Any) -> None:
        """See ``Call``."""
        self._check_thread()
        self.writer.progress(text, data)

    def _check_thread(self) -> None:
        check_thread(self._thread, f"call {self.id}", "a ToolStream of it")

    def cancel(self, reason: str) -> None:
        """Cancel the skill, once. A repeated request changes nothing, but that a stop of the robot counts also
        after another one, and is the reason that the close gives."""
        is_first, is_stop = self.cancel_reason is None, reason.startswith(STOPPED)
        if is_stop and self.stands_since is None:
            self.stands_since = clock.monotonic()
        if is_first or (is_stop and not (self.cancel_reason or "").startswith(STOPPED)):
            self.cancel_reason = reason[:_MAX_TEXT] or "no reason was given"
        if is_first:
            self.task.cancel()

    @property
    def is_to_end(self) -> bool:
        """True once it was asked to end, or its time limit has expired."""
        return self.cancel_reason is not None or (self.limit is not None and self.limit.expired())

    def disown(self, outcome: Outcome, text: str) -> None:
        """Cancel the skill, once, because nobody answers for the call any more. However it ends then, it closes as
        ``outcome``."""
        if self.disowned_at is None:
            self.disowned_at, self._final = clock.monotonic(), (outcome, text[:_MAX_TEXT])
            self.stands_since = self.disowned_at if self.stands_since is None else self.stands_since
            self.cancel(text)

    def answered_for_since(self) -> float | None:
        """Return the time on the loop's clock at which somebody last acknowledged it; its beginning if nobody has
        yet.

        It is None if nobody has and the caller has not said that somebody will, like a script on a bus without a
        bridge.
        """
        acknowledged_at = self.writer.acknowledged_at
        if acknowledged_at > self._begun_at:
            return acknowledged_at
        return None if self.on_loss is None else self._begun_at

    def close(self, outcome: Outcome, text: str, data: Mapping[str, Any]) -> None:
        """Close the stream, once. The outcome of a disowned call has been decided before it ended."""
        if self._final is not None:
            (outcome, text), data = self._final, self._lost_at_its_end()
        elif outcome in (Outcome.CANCELLED, Outcome.TIMED_OUT):
            text += self.overdue
        elif outcome is Outcome.FAILED and self.cancel_reason is not None:
            text, data = _failed_at_its_end(text, data, self.cancel_reason[:_MAX_TO_END])
        if not self.may_have_run:
            data = {**data, NOT_RUN: True}
        if self.unawaited is not None and (texts := self.unawaited.texts):
            more = {UNAWAITED: "; ".join(texts)}
            data = {**data, **more} if payload_size(text, {**data, **more}) <= MAX_PAYLOAD else data
        self.writer.close(outcome, text, data)

    def close_disowned(self, more: str) -> None:
        """Close the stream of a disowned call whose skill goes on; ``more`` is added to the text."""
        if self._final is not None:
            self.writer.close(self._final[0], self._final[1] + more, self._lost_at_its_end())

    def _lost_at_its_end(self) -> Mapping[str, Any]:
        """The part of a disowned call's close that says for which other reason it was to end; empty if for none."""
        if self._final is None or self.cancel_reason is None or self.cancel_reason == self._final[1]:
            return {}
        return {TO_END: self.cancel_reason[:_MAX_TO_END]} if self._final[0] is Outcome.LOST else {}


def _failed_at_its_end(text: str, data: Mapping[str, Any], reason: str) -> tuple[str, Mapping[str, Any]]:
    """Return text and data of the close of a call that failed when it was to end; that counts for more than a
    result for which there is no room beside it."""
    text, data = f"{text}; it was to end: {reason}", {**data, TO_END: reason}
    if payload_size(text, data) > MAX_PAYLOAD:
        data.pop("result", None)
    return text, data
