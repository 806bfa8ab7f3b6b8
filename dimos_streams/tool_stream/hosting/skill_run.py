"""The run of a skill for one call, from its beginning to the call's ``close``, whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any

from dimos_streams.common.secrets import redacted
from dimos_streams.common.tasks import is_stray, stray_cancellation
from dimos_streams.module import Module
from dimos_streams.skill import SkillSpec
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.hosting.failures import ExitedError, logged_bug, skill_errors
from dimos_streams.tool_stream.hosting.results import MAX_ERROR, close_of, error_data, payload_size
from dimos_streams.tool_stream.hosting.running_call import RunningCall
from dimos_streams.tool_stream.hosting.unawaited import note_unawaited
from dimos_streams.tool_stream.protocol.bounds import MAX_PAYLOAD


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
        _close_returned(spec, call, *close_of(module, spec, result))
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
    call.close(outcome, why, data if payload_size(why + call.overdue, data) <= MAX_PAYLOAD else {})


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
        text = "; ".join(str(each) or f"{type(each).__name__} without a text" for each in said)
        call.close(Outcome.FAILED, redacted(text)[:MAX_ERROR], error_data(said[0]))
    else:
        call.close(Outcome.FAILED, logged_bug(call.id, call.skill, error), {"error": "internal"})
