"""The beginning of an agent: it waits for its bridge, takes over what is open, and goes on where a dead one was."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from dimos_streams import clock
from dimos_streams.agent.calls.open_call import OpenCall
from dimos_streams.agent.calls.reconciliation import INTRODUCTION_S
from dimos_streams.agent.control.control import Mode
from dimos_streams.agent.core import AgentCore
from dimos_streams.agent.loop.intake import close
from dimos_streams.agent.missions.message_queue import Notice, OperatorInput
from dimos_streams.agent.missions.mission import Mission
from dimos_streams.agent.policies.gates.base import Reviewer
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.record.begun_calls import begun_call, whose_list
from dimos_streams.agent.resumption.state import (
    AskedBatch,
    RecordedCall,
    Resumption,
    UnfinishedAbort,
    UnfinishedMission,
)
from dimos_streams.agent.subagents.sub_mission import SUB
from dimos_streams.client.backoff import Backoff
from dimos_streams.errors import SkillError, SkillUnavailableError, UserError
from dimos_streams.skill import SkillTraits


async def recover(core: AgentCore, rng: random.Random, waiting: Callable[[str], None]) -> int:
    """Return the offset of the journal to read on from. ``waiting`` is called with the reason the bridge can't be
    used yet."""
    _keep_settings(core)
    await core.close_replaced()
    backoff = Backoff(rng)
    missions = _missions(core)
    known = _known_calls(core, missions)
    closed = core.resumption.closed if core.resumption else {}
    core.calls.remember_closed({call_id: _held_to(core, agents) for call_id, agents in closed.items()})
    while True:
        try:
            offset = await core.gateway.offset()
            adopted = await core.calls.adopt_open(known)
            break
        except SkillUnavailableError as error:
            waiting(str(error))
            await asyncio.sleep(backoff.next())
    await core.offers.refresh()  # so that robots' names are known before anybody says that one is to stop
    adopted = _claimed(core, adopted, missions)
    for call in adopted:
        text = f"{call.skill} (call {call.call_id}) runs from before this agent was started"
        core.events.emit(EventKind.NOTE, (), text=text, skill=call.skill, call_id=call.call_id)
    if core.resumption is None:
        return offset
    _keep_counts(core, core.resumption, missions)
    _go_on(core, core.resumption, missions)
    if core.resumption.abort is not None:
        _go_on_aborting(core, core.resumption.abort)
    # A journal that begins anew has offsets that mean something else.
    return min(core.resumption.offset, offset)


async def tidy_up(core: AgentCore) -> None:
    """Close calls of the record that the bridge does not know any more, once it could hear of those that live."""
    if core.resumption is None or not core.resumption.calls:
        return
    await asyncio.sleep(INTRODUCTION_S)
    try:
        await core.calls.close_lost(unknown_too=True)
    except SkillError as error:
        core.events.emit(EventKind.NOTE, (), text=f"calls from before can't be compared with the bridge's: {error}")


def _keep_settings(core: AgentCore) -> None:
    """Keep what the operator has set: nothing may begin, nor the robot move, because the agent has died."""
    if core.resumption is None:
        return
    settings = core.resumption.settings
    if settings.mode is Mode.PAUSED:
        core.control.pause("as it was when the agent was restarted")
    elif settings.mode is Mode.STEPPING:
        core.control.step_mode()
    for skill, enabled in settings.skills.items():
        _keep_set(core, skill, enabled)
    if settings.model and settings.model != core.model.name:
        _keep_model(core, settings.model)


def _keep_set(core: AgentCore, skill: str, enabled: bool) -> None:
    """Keep a skill enabled or disabled. If it can't be, because the config disables many, nothing begins."""
    try:
        core.books.enabled.set(skill, enabled)
    except SkillError as error:
        core.control.pause(f"what the operator has set can't be kept: {error}")


def _keep_model(core: AgentCore, model: str) -> None:
    """Keep the model that the operator chose. If it can't be asked any more, nothing begins: it is not replaced by
    one that they did not choose."""
    try:
        core.use_model(model)
    except UserError as error:
        core.control.pause(f"the model that was chosen, {model!r}, can't be asked any more: {error}")


def _missions(core: AgentCore) -> dict[str, Mission]:
    """Begin the missions again that were not over; return them by id."""
    found = {}
    for unfinished in core.resumption.missions if core.resumption else ():
        mission = found[unfinished.id] = core.missions.open(unfinished.id, unfinished.input)
        mission.began_utime = unfinished.began_utime or mission.began_utime
        mission.spent = unfinished.spent
        mission.end_state = replace(unfinished.end_state, ended="")  # ``_go_on_with`` ends its calls, too
    return found


def _keep_counts(core: AgentCore, resumption: Resumption, missions: dict[str, Mission]) -> None:
    """Show the guards of a mission what it did before: a restart begins no count anew."""
    view, new_guard = core.loop.parts.view, core.loop.parts.permissions.new_guard
    for unfinished in resumption.missions:
        guard = missions[unfinished.id].guard = new_guard()
        for asked, at in zip(unfinished.asked, _times(unfinished.asked), strict=True):
            if asked.calls:
                guard.observe(view.meant(asked.calls), view.polling(), at=at)


def _times(asked: Sequence[AskedBatch]) -> list[float]:
    """The times of answers on the loop's clock, none before the one that precedes it, and none in the future.

    Where the machine's clock was set back, what was before that moves back as far: what counts is the pace of a
    mission, which the recorded times still tell on either side.
    """
    found: list[float] = []
    now, utime = clock.monotonic(), clock.utime()
    age = set_back = 0
    for batch in reversed(asked):
        recorded = utime - batch.utime + set_back
        set_back += max(0, age - recorded)
        age = max(age, recorded)
        found.append(now - age / 1e6)
    return found[::-1]


def _held_to(core: AgentCore, agents: tuple[str, ...]) -> Reviewer | None:
    """The judge of what a call goes on with that a sub-agent has begun; None for the agent's own."""
    return core.delegation.held_to(agents, core.loop.parts) if agents else None


def _known_calls(core: AgentCore, missions: dict[str, Mission]) -> list[OpenCall]:
    return [
        OpenCall(
            call.call_id,
            call.skill,
            tuple(missions[id] for id in call.missions if id in missions),
            last_seq=call.last_seq,
            arguments=call.arguments or {},
            arguments_known=call.arguments is not None,
            reviewer=_held_to(core, call.agents),
        )
        for call in (core.resumption.calls if core.resumption else ())
    ]


def _claimed(core: AgentCore, adopted: tuple[OpenCall, ...], missions: dict[str, Mission]) -> tuple[OpenCall, ...]:
    """Assign calls that the dead agent had asked for without hearing their ids to its missions; return the others."""
    left = list(adopted)
    unanswered = core.resumption.unanswered if core.resumption else ()
    # Of two that are alike, the narrower list holds.
    for asked in sorted(unanswered, key=lambda each: -len(each.agents)):
        if asked.arguments is None or asked.call_id:
            continue
        for call in left:
            if (call.skill, dict(call.arguments)) == (asked.skill, dict(asked.arguments)) and not call.parent:
                core.calls.assign(call, tuple(missions[id] for id in asked.missions if id in missions))
                asked.call_id, call.reviewer = call.call_id, _held_to(core, asked.agents)
                _note_begun(core, asked)
                left.remove(call)
                break
    return tuple(left)


def _note_begun(core: AgentCore, call: RecordedCall) -> None:
    """Write down the calls whose begin the dead agent could not record any more."""
    traits = core.offers.all.get(call.skill) or SkillTraits()
    core.events.emit(
        EventKind.CALL_OPEN,
        call.missions,
        **({SUB: call.sub} if call.sub else {}),
        **begun_call(call.skill, traits, call.arguments or {}, call_id=call.call_id, tool_call_id=call.tool_call_id),
        **whose_list(call.agents),
    )


def _go_on(core: AgentCore, resumption: Resumption, missions: dict[str, Mission]) -> None:
    """Give results to what has none, and begin again where the model was in the middle."""
    _give_results(core, resumption)
    for unfinished in resumption.missions:
        _go_on_with(core, unfinished, missions[unfinished.id])
    going_on = any(each.in_turn and not each.end_state.ended for each in resumption.missions)
    if core.conversation.awaits_answer and not going_on:
        close(core.loop.parts, (), "the agent was restarted")


def _give_results(core: AgentCore, resumption: Resumption) -> None:
    for call in resumption.unanswered:
        whose = {SUB: call.sub} if call.sub else {}
        core.events.emit(
            EventKind.RESULT,
            call.missions,
            **whose,
            text=_fate(call),
            tool_call_id=call.tool_call_id,
            skill=call.skill,
            call_id=call.call_id,
            is_error=not call.call_id,
            event=None,
        )


def _go_on_with(core: AgentCore, unfinished: UnfinishedMission, mission: Mission) -> None:
    if unfinished.end_state.ended:
        mission.end(unfinished.end_state.ended)
    else:
        core.missions.limit(mission)
    if mission.ended:
        let_go(mission)
        return
    core.events.emit(EventKind.NOTE, (mission.id,), text="the agent was restarted and goes on with this mission")
    if not unfinished.heard:
        core.queue.put_nowait(OperatorInput(unfinished.input, (mission,)))
    elif unfinished.in_turn:
        core.queue.put_nowait(Notice("", (mission,)))
    else:
        let_go(mission)


def _go_on_aborting(core: AgentCore, abort: UnfinishedAbort) -> None:
    """Go on with the order to end everything, but not with that to take back: no robot moves because its agent has
    died."""
    if abort.rollback:
        text = "The agent was restarted while it aborted: what was to be taken back and was not is left as it is"
        core.events.emit(EventKind.NOTE, (), text=text)
    core.loop.begin_abort(abort.reason, others=partial(core.others.end, abort.reason) if abort.others else None)


def let_go(mission: Mission) -> None:
    """End a mission of which nothing is left."""
    if mission.over:
        mission.hold()
        mission.release()


def _fate(call: RecordedCall) -> str:
    if call.call_id:
        return f"The agent was restarted. Call {call.call_id} was begun; what it has to say will be reported."
    if call.arguments is None:
        return "not run: the agent was restarted before"
    return "The agent was restarted while this was under way; it is not known how far it came. It does not run now."
