"""The beginning of an agent: it waits for its bridge, takes over what is open, and goes on where a dead one was."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from dimos_streams.agent.calls.open_call import OpenCall
from dimos_streams.agent.calls.reconciliation import INTRODUCTION_S
from dimos_streams.agent.missions.end_reasons import stopped
from dimos_streams.agent.model_switch import ModelSwitch
from dimos_streams.agent.policies.gates.gate_state import GateState
from dimos_streams.agent.policies.stopped_missions import OF_NONE
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.agent.resumption.calls_before import CallsBefore
from dimos_streams.agent.resumption.kept_settings import keep_settings
from dimos_streams.agent.resumption.missions_before import MissionsBefore
from dimos_streams.agent.resumption.state import Resumption, UnfinishedAbort, UnfinishedMission
from dimos_streams.agent.work import AgentWork
from dimos_streams.client.backoff import Backoff
from dimos_streams.errors import SkillError, SkillUnavailableError
from dimos_streams.tool_stream.gateway import SkillGateway


@dataclass(frozen=True, slots=True)
class Recovery:
    """Lets an agent begin: with what is open now, and with what the record says of a dead one of its name."""

    resumption: Resumption | None
    """The state of the dead agent, or None if there was none."""
    gateway: SkillGateway
    work: AgentWork
    gate_state: GateState
    model_switch: ModelSwitch

    async def run(self, rng: random.Random, waiting: Callable[[str], None]) -> int:
        """Return the offset of the journal to read on from. ``waiting`` is called with the reason the bridge can't
        be used yet."""
        before, parts = self.resumption, self.work.loop.parts
        emit = parts.transcript.emit
        if before is not None:
            self._keep_settings(before)
        await self.model_switch.close_replaced()
        missions = MissionsBefore(parts.queue, emit, self.work.missions, before.missions if before else ())
        calls = CallsBefore(parts.scope.calls, parts.toolbox, emit, self.work.delegation, missions.by_id)
        known = calls.open_calls(before.calls if before else ())
        calls.remember_closed(before.closed if before else {})
        offset, adopted = await self._adopt(known, Backoff(rng), waiting)
        self._note_missed_orders(before.missions if before else ())
        # So that robots' names are known before anybody says that one is to stop.
        await parts.toolbox.catalog.refresh()
        for call in calls.claim(adopted, before.unanswered if before else ()):
            text = f"{call.skill} (call {call.call_id}) runs from before this agent was started"
            emit(EventKind.NOTE, (), text=text, skill=call.skill, call_id=call.call_id)
            parts.scope.calls.incoming.adopted.notify(call)
        if before is None:
            return offset
        missions.keep_counts(parts.stop_policy.guards, parts.toolbox)
        calls.give_results(before.unanswered)
        if not missions.go_on():
            why = "the agent was restarted"
            parts.transcript.close_unanswered((), stopped(why, ""), why)
        if before.abort is not None:
            self._go_on_aborting(before.abort)
        # A journal that begins anew has offsets that mean something else.
        return min(before.offset, offset)

    async def tidy_up(self) -> None:
        """Close calls of the record that the bridge does not know any more, once it could hear of those that live."""
        if self.resumption is None or not self.resumption.calls:
            return
        await asyncio.sleep(INTRODUCTION_S)
        try:
            await self.work.loop.parts.scope.calls.reconciliation.close_lost(unknown_too=True)
        except SkillError as error:
            text = f"calls from before can't be compared with the bridge's: {error}"
            self.work.loop.parts.transcript.emit(EventKind.NOTE, (), text=text)

    def _keep_settings(self, before: Resumption) -> None:
        keep_settings(
            before.settings,
            self.work.loop.parts.oversight.control,
            self.gate_state.enabled,
            model=self.model_switch.name,
            use_model=self.model_switch.use,
        )

    async def _adopt(
        self, known: Sequence[OpenCall], backoff: Backoff, waiting: Callable[[str], None]
    ) -> tuple[int, tuple[OpenCall, ...]]:
        """Take over the open calls as soon as the bridge answers; return its newest offset and those that no record
        knew."""
        while True:
            try:
                offset = await self.gateway.offset()
                self.work.loop.parts.oversight.robot_stops.know(await self.gateway.robot_orders())
                return offset, await self.work.loop.parts.scope.calls.reconciliation.adopt_open(known)
            except SkillUnavailableError as error:
                waiting(str(error))
                await asyncio.sleep(backoff.next())

    def _note_missed_orders(self, missions: Iterable[UnfinishedMission]) -> None:
        """Note which missions are from before an order to stop or release the robot that came while nobody heard it.
        It is not known when what is of no mission was begun."""
        orders = self.work.loop.parts.oversight.robot_stops.numbers
        missed = [each.id for each in missions if not (orders <= each.known_orders or each.end_state.ended)]
        if orders:
            missed.append(OF_NONE)
        if missed:
            self.gate_state.robot_stopped(missed)

    def _go_on_aborting(self, abort: UnfinishedAbort) -> None:
        """Go on with the order to end everything, but not with that to take back: no robot moves because its agent
        has died."""
        if abort.rollback:
            text = "The agent was restarted while it aborted: what was to be taken back and was not is left as it is"
            self.work.loop.parts.transcript.emit(EventKind.NOTE, (), text=text)
        oversight, ending = self.work.loop.parts.oversight, None
        if abort.others:
            oversight.robot_stops.say_stopped()
            ending = partial(oversight.others.end, abort.reason)
        self.work.loop.begin_abort(abort.reason, others=ending)
