"""One call while it runs: the part that the skill sees, and the way from its end to its ``close``."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Generator, Mapping
from enum import Enum
from typing import Any

from pydantic import BaseModel

from dimos_streams import clock
from dimos_streams.common.json.depth import is_deeper
from dimos_streams.common.json.writing import json_text
from dimos_streams.common.process.threads import check_thread
from dimos_streams.common.secrets import redacted
from dimos_streams.common.tasks import is_stray, stray_cancellation
from dimos_streams.errors import SkillError
from dimos_streams.module import Module
from dimos_streams.skill import Call, OnLoss, SkillClient, SkillSpec
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.hosting.failures import ExitedError, logged_bug, skill_errors
from dimos_streams.tool_stream.hosting.unawaited import Unawaited, note_unawaited
from dimos_streams.tool_stream.protocol.bounds import MAX_DATA_DEPTH, MAX_PAYLOAD
from dimos_streams.tool_stream.protocol.close_data import MISFIT, NOT_RUN, STOPPED, UNAWAITED
from dimos_streams.tool_stream.sending.call_writer import CallWriter

_logger = logging.getLogger(__name__)

_MAX_TEXT = 2000
_MAX_MISFIT = 500
_MAX_ERROR = 10_000
"""Maximum length of a skill's own error, in characters: they fit into an event, however many bytes each has."""


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
        after another one."""
        if self.stands_since is None and reason.startswith(STOPPED):
            self.stands_since = clock.monotonic()
        if self.cancel_reason is None:
            self.cancel_reason = reason[:_MAX_TEXT] or "no reason was given"
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
            (outcome, text), data = self._final, {}
        elif outcome in (Outcome.CANCELLED, Outcome.TIMED_OUT):
            text += self.overdue
        if not self.may_have_run:
            data = {**data, NOT_RUN: True}
        if self.unawaited is not None and (texts := self.unawaited.texts):
            more = {UNAWAITED: "; ".join(texts)}
            data = {**data, **more} if _size(text, {**data, **more}) <= MAX_PAYLOAD else data
        self.writer.close(outcome, text, data)

    def close_disowned(self, more: str) -> None:
        """Close the stream of a disowned call whose skill goes on; ``more`` is added to the text."""
        if self._final is not None:
            self.writer.close(self._final[0], self._final[1] + more, {})


async def run_call(
    module: Module, spec: SkillSpec, call: RunningCall, arguments: Mapping[str, Any], *, after_s: float
) -> None:
    """Run a skill to its end and close its stream, whatever happens. Within ``after_s`` that the call is to end may
    be read: nothing of the skill runs before."""
    call.limit = limit = asyncio.timeout(spec.policy.time_limit_s)
    call.unawaited = note_unawaited(spec, module.log)
    try:
        async with limit:
            if after_s:
                await asyncio.sleep(after_s)
            result = await _invoke(module, spec, call, arguments)
        _close_returned(spec, call, *_completed(module, spec, result))
    except asyncio.CancelledError as error:
        # A skill whose task was ended by somebody else than the host has not been asked for a reason.
        if is_stray(error):
            module.log.warning("%s", stray_cancellation(f"{call.skill}:{call.id}"), exc_info=error)
        call.close(Outcome.CANCELLED, call.cancel_reason or "it was ended from inside", {})
    except TimeoutError as error:
        if limit.expired():
            call.close(*_ended(spec, call), {})
        else:
            close_failed(call, error)
    except Exception as error:
        close_failed(call, error)


def _close_returned(spec: SkillSpec, call: RunningCall, text: str, data: Mapping[str, Any]) -> None:
    """Close a call whose skill has returned. One that was to end has not completed, though it swallowed that and
    returned: its result is there all the same, if there is room."""
    if not call.is_to_end:
        call.close(Outcome.COMPLETED, text, data)
        return
    outcome, why = _ended(spec, call)
    call.close(outcome, why, data if _size(why + call.overdue, data) <= MAX_PAYLOAD else {})


def _ended(spec: SkillSpec, call: RunningCall) -> tuple[Outcome, str]:
    """Return outcome and text of a call that was to end."""
    if call.cancel_reason is not None:
        return Outcome.CANCELLED, call.cancel_reason
    return Outcome.TIMED_OUT, f"it ran longer than {spec.policy.time_limit_s:g} s"


async def _invoke(module: Module, spec: SkillSpec, call: RunningCall, arguments: Mapping[str, Any]) -> Any:
    given = dict(arguments)
    if spec.call_parameter is not None:
        given[spec.call_parameter] = call
    call.may_have_run = True
    try:
        if spec.is_async:
            result = await _awaited(spec.function(module, **given))
        else:
            # It may have waited for a thread for so long that nobody wants it any more.
            work = module.run_blocking(lambda: None if call.is_to_end else spec.function(module, **given))
            call.work = asyncio.ensure_future(_awaited(work))
            result = await asyncio.shield(call.work)
    except Exception:
        await _all_sent(call)
        raise
    await _all_sent(call)
    return result


async def _awaited(work: Awaitable[Any]) -> Any:
    try:
        return await work
    except (SystemExit, KeyboardInterrupt) as error:
        raise ExitedError(f"it asked the program to exit ({error!r}); raise SkillError instead") from error


async def _all_sent(call: RunningCall) -> None:
    if call.unsent:
        await asyncio.gather(*call.unsent)


def close_failed(call: RunningCall, error: BaseException) -> None:
    """Close a call as failed: its caller gets the skill's own words, or, of a bug, what ``logged_bug`` says."""
    if said := skill_errors(error):
        text = "; ".join(map(str, said))
        call.close(Outcome.FAILED, redacted(text)[:_MAX_ERROR], _error_data(said[0]))
    else:
        call.close(Outcome.FAILED, logged_bug(call.id, call.skill, error), {"error": "internal"})


def _completed(module: Module, spec: SkillSpec, result: Any) -> tuple[str, dict[str, Any]]:
    """Return text and data of a completed close. A result that is not as its skill declares it is sent all the same,
    and said to be: to the log, and to tests where there is room. Raises as ``_result`` does."""
    if isinstance(result, Generator):  # which can be gone through only once
        result = list(result)
    text, data = _result(result)
    misfit = _misfit(module, spec, result)
    if misfit is not None:
        module.log.warning("%s", misfit)
        if _size(text, data | {MISFIT: misfit}) <= MAX_PAYLOAD:
            data[MISFIT] = misfit
    return text, data


def _misfit(module: Module, spec: SkillSpec, result: Any) -> str | None:
    try:
        misfit = spec.result_type.misfit(spec.name, result, json_text(result))
    except Exception:  # the call has done what it was for, whatever an author's types raise when they are asked
        module.log.exception("the result of skill %r can't be compared with what it declares", spec.name)
        return None
    return None if misfit is None else misfit[:_MAX_MISFIT]


def _size(text: str, data: Mapping[str, Any]) -> int:
    return len(json_text(data).encode()) + len(text.encode("utf-8", "surrogatepass"))


def _result(result: Any) -> tuple[str, dict[str, Any]]:
    """Return text and data of a completed close. Raises ``SkillError`` if it has no JSON form, is nested too deep or
    is too large."""
    if result is None:
        return "done", {"result": None}
    try:
        encoded = json_text(result)
    except SkillError as error:
        raise SkillError(f"the result: {error}") from error
    if is_deeper(encoded, MAX_DATA_DEPTH - 1):  # it is within the data of the close
        raise SkillError(f"the result is nested more than {MAX_DATA_DEPTH - 1} deep; give a reference instead")
    text = (result if isinstance(result, str) else _own_text(result) or encoded)[:_MAX_TEXT]
    data = {"result": result}
    if (size := _size(text, data)) > MAX_PAYLOAD:
        raise SkillError(
            f"the result and its text have {size} bytes, {MAX_PAYLOAD} are possible; give a reference instead"
        )
    return text, data


def _error_data(error: SkillError) -> dict[str, Any]:
    """Return the data of a failed close. A result that can't be sent is left out: the error counts for more."""
    data: dict[str, Any] = {"error": type(error).__name__}
    if error.result is not None:
        try:
            _, result_data = _result(error.result)
            size = _size(str(error)[:_MAX_ERROR], result_data)
        except SkillError as unfit:
            _logger.warning("the result of a failed call is left out: %s", unfit)
        else:
            return data | result_data if size <= MAX_PAYLOAD else data
    return data


def _own_text(result: Any) -> str | None:
    """Return the text of a result if its class has one for people, and that of an enum's value; else None."""
    if isinstance(result, (dict, list, tuple, set, int, float, bool)):
        return None
    defines = next(base for base in type(result).__mro__ if "__str__" in vars(base))
    if defines in (object, BaseModel):
        return None
    return str(result.value if defines is Enum else result)
