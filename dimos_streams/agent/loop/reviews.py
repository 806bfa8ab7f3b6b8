"""Reviews of calls that skills ask for on the agent's behalf: they pass the gates as the calls of its model do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dimos_streams.agent.calls.call_manager import CallManager
from dimos_streams.agent.calls.open_call import OpenCall
from dimos_streams.agent.calls.skill_catalog import SkillCatalog
from dimos_streams.agent.loop.parts import LoopParts
from dimos_streams.agent.missions.message_queue import Notice
from dimos_streams.agent.missions.mission import Mission, all_ended, ids
from dimos_streams.agent.policies.gates.base import Allow, CallRequest, Refuse
from dimos_streams.agent.policies.gates.matching.skill_names import names_skill
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.record.begun_calls import begun_call
from dimos_streams.common.tasks import end_tasks, ends_within, first_of
from dimos_streams.errors import SkillError
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.skill import Call, OnDuplicate, SkillTraits
from dimos_streams.tool_stream.family import parent_of
from dimos_streams.tool_stream.gateway import OfferedSkill
from dimos_streams.tool_stream.review import BEGUN, AskedCall, Permission

_MAX_PERMITTED = 1000
_LOOK_S = 0.05
_WITHDRAWN_S = 1.0
"""The time in s for the bridge to say that a call had begun when its permission was taken back."""
_LONGEST = 2000
_KNOWN_WITHIN_S = 3.0
"""The time in s for this agent to hear of a call of which the bridge may hear first."""
_TAKEN_BACK: Mapping[str, str] = {
    EventKind.PAUSE: "the agent is paused",
    EventKind.STEP: "the operator steps through the agent's calls",
}


@dataclass(eq=False, slots=True)
class _Permitted:
    """A call that has passed the gates, until it has begun or never will."""

    asked: AskedCall
    skill: OfferedSkill
    verdict: Allow
    review: Call
    held: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the operator pauses the agent, or begins to step through its calls."""


class Reviews:
    """Judges calls and holds each permission until the bridge has used it; pause and step mode take it back.

    It has to hear of each call that begins on the agent's behalf (``note_begun``), and of each event of the agent
    (``apply``).
    """

    def __init__(
        self,
        calls: CallManager,
        parts_of: Callable[[tuple[Mission, ...]], LoopParts],
        child_begun: Callable[[str, Mapping[str, Any], tuple[str, ...], str], None],
    ) -> None:
        """``parts_of`` returns the parts of the loop that works on missions. ``child_begun`` is called with skill,
        arguments, missions and id of a call that has begun as a part of another one, without an event."""
        self._child_begun = child_begun
        self._calls = calls
        self._parts_of = parts_of
        self._permitted: dict[str, _Permitted] = {}

    async def review(self, call: Call, asked: AskedCall) -> None:
        """Review a call in the stream of ``call``, until that is ended. Raises ``SkillError``, which is the
        refusal."""
        asking = await self._calls.known.find(asked.parent, _KNOWN_WITHIN_S)
        if asking is None:
            raise SkillError(f"call {asked.parent!r}, which asks for {asked.skill!r}, is no open call of this agent")
        work = asyncio.ensure_future(self._review(call, asked, asking))
        try:
            await first_of(work, asking.ending)
            if not work.done():
                _check_wanted(asked, asking)
            work.result()
        finally:
            await end_tasks(work)

    def note_begun(self, call: OpenCall) -> None:
        """Record that a call has begun that another one has asked for: from here on it is one of the agent's, as if
        the model had made it. The process that permitted it may have died before it could record that."""
        permitted = self._permitted.pop(call.call_id, None)
        if permitted is None and (not call.parent or self._calls.memory.closed(call.call_id) is not None):
            return
        parts = self._parts_of(call.missions)
        known = parts.toolbox.catalog.all.get(call.skill) if call.arguments_known else None
        traits = permitted.skill if permitted else known or SkillTraits()  # nothing undoes what is not known
        arguments = permitted.verdict.arguments if permitted else call.arguments
        agents = (call.context.reviewer or parts.toolbox.reviewer).agents
        begun = begun_call(call.skill, traits, arguments, call_id=call.call_id, parent=call.parent, agents=agents)
        parts.transcript.emit(EventKind.CALL_OPEN, ids(call.missions), **begun)
        self._calls.endings.limit(call, parts.model.limits.call_timeout_s)
        if permitted is not None:
            self._notify(permitted, call.call_id, call)

    def apply(self, event: AgentEvent) -> None:
        """Take back at a pause or a change to step mode, at once, what is permitted: what has not begun may not begin
        from then on."""
        why = _TAKEN_BACK.get(event.kind)
        for permitted in tuple(self._permitted.values()) if why else ():
            if permitted.review.cancel_reason is None and not permitted.verdict.permit.holds:
                permitted.review.progress(f"held: {why}")
                permitted.held.set()

    async def _review(self, call: Call, asked: AskedCall, asking: OpenCall) -> None:
        """Judge a call, and hold the permission for it. Raises ``SkillError``, which is the refusal."""
        _check_wanted(asked, asking)
        toolbox = self._parts_of(asking.missions).toolbox
        request = await _request_for(asked, asking, toolbox.catalog)
        verdict = await (asking.context.reviewer or toolbox.reviewer).review(request)
        if isinstance(verdict, Refuse):
            raise SkillError(verdict.text)
        if not self._has_room():
            verdict.give_back()
            raise SkillError(f"{_MAX_PERMITTED} calls wait to begin; no more are permitted")
        permitted = self._permitted[asked.call_id] = _Permitted(asked, request.skill, verdict, call)
        try:
            await self._hold(permitted, asking)
        finally:
            if self._permitted.get(asked.call_id) is permitted:
                self._settle(permitted, asking, request.missions)

    def _settle(self, permitted: _Permitted, asking: OpenCall, missions: tuple[str, ...]) -> None:
        """Give back what a permission has used up, unless the bridge has begun the call: then its first event ends
        the permission, or, of a child, whose events are not for this agent, this does."""
        call_id, verdict = permitted.asked.call_id, permitted.verdict
        if permitted.review.cancel_reason != BEGUN:
            del self._permitted[call_id]
            verdict.give_back()
        elif parent_of(call_id):
            del self._permitted[call_id]
            self._child_begun(permitted.skill.name, verdict.arguments, missions, call_id)
            self._notify(permitted, call_id, asking)

    def _has_room(self) -> bool:
        """Return whether one more permission can be held. The oldest of a call that has begun, and whose first event
        was never seen, makes room for it."""
        if len(self._permitted) < _MAX_PERMITTED:
            return True
        begun = (call_id for call_id, each in self._permitted.items() if each.review.cancel_reason == BEGUN)
        oldest = next(begun, None)
        if oldest is not None:
            del self._permitted[oldest]
        return oldest is not None

    async def _hold(self, permitted: _Permitted, asking: OpenCall) -> None:
        """Permit a call whenever the operator lets it begin, as long as nothing in the world speaks against it.

        The bridge may have to wait before it can begin the call.
        """
        verdict = permitted.verdict
        while True:
            refusal = await verdict.last_look()
            _check_wanted(permitted.asked, asking)
            if refusal is not None:
                raise SkillError(refusal.text)
            permitted.held.clear()
            on_duplicate = self._on_duplicate(permitted, asking)
            permission = Permission(arguments=dict(verdict.arguments), on_duplicate=on_duplicate)
            await permitted.review.update("may begin", **permission.data())
            await self._keep(permitted)

    def _on_duplicate(self, permitted: _Permitted, asking: OpenCall) -> OnDuplicate | None:
        """Return the fate that is asked for where a duplicate runs: as with what a sub-agent's model asks for, only a
        call in the sub-agent's reach is ended for another one."""
        scope, skill, verdict = self._parts_of(asking.missions).scope, permitted.skill, permitted.verdict
        if scope.mission is None or (verdict.on_duplicate or skill.on_duplicate) != "replace":
            return verdict.on_duplicate
        in_reach = [call.arguments for call in scope.open() if call.skill == skill.name]
        replaces = any(skill.are_duplicates(verdict.arguments, arguments) for arguments in in_reach)
        return verdict.on_duplicate if replaces else "reject"

    async def _keep(self, permitted: _Permitted) -> None:
        """Keep a permission until the operator takes it back, or until something in the world speaks against it."""
        while not permitted.held.is_set():
            await ends_within(_LOOK_S, permitted.held.wait())
            refusal = permitted.verdict.again(permitted.verdict.arguments)
            if refusal is not None:
                # If the bridge has begun the call already, it is the call that has changed the world.
                permitted.review.progress(f"held: {refusal.text}"[:_LONGEST])
                await asyncio.sleep(_WITHDRAWN_S)
                raise SkillError(refusal.text)

    def _notify(self, permitted: _Permitted, call_id: str, of: OpenCall) -> None:
        """Say what the gates have to say of a call that has begun, to the missions of ``of``: the call that has asked
        for it may have changed hands since."""
        if permitted.verdict.note:
            which = f"{permitted.skill.name} (call {call_id}, begun by call {permitted.asked.parent})"
            text = f"{which}: {permitted.verdict.note}"
            self._parts_of(of.missions).queue.put_nowait(Notice(text, of.missions))


async def _request_for(asked: AskedCall, asking: OpenCall, catalog: SkillCatalog) -> CallRequest:
    """Return a call that a skill asks for as gates judge it. Raises ``UnknownSkillError``."""
    skill = await catalog.find(asked.skill)
    first, is_part = catalog.all.get(asking.skill), bool(parent_of(asked.call_id))
    return CallRequest(
        skill=skill,
        arguments=asked.arguments,
        missions=ids(asking.missions),
        parent=asked.parent,
        authored=is_part and asking.arguments_known and not names_skill(asking.arguments, skill),
        part_of_motion=is_part and first is not None and first.motion,
    )


def _check_wanted(asked: AskedCall, asking: OpenCall) -> None:
    """Raise ``SkillError`` if nobody wants the call any more."""
    why = asking.asked_to_end or (all_ended(asking.missions) and f"its mission was ended: {asking.missions[0].ended}")
    if why:
        raise SkillError(f"not run: call {asked.parent!r}, which asks for {asked.skill!r}, is to end: {why}")
