"""An operator's input to an agent, as a call: it lasts as long as the mission that it leads to, and reports it."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from dimos_streams.agent.context.conversation import Conversation
from dimos_streams.agent.context.entry import Entry
from dimos_streams.agent.missions.end_reasons import completed, explained
from dimos_streams.agent.missions.message_queue import OperatorInput
from dimos_streams.agent.missions.mission import Mission
from dimos_streams.agent.operators.busy_notice import waits_behind
from dimos_streams.agent.operators.said import MissionIncompleteError, Said
from dimos_streams.agent.operators.stop_order import StopOrder
from dimos_streams.agent.policies.approvals import ApprovalRegistry
from dimos_streams.agent.work import AgentWork
from dimos_streams.common.readable.json_cut import cut_to
from dimos_streams.common.tasks import outlasting
from dimos_streams.errors import SkillError
from dimos_streams.skill import Call

_LINE = 2000
_SAID_BYTES = 30_000
"""Maximum size of a mission's last text in bytes of JSON: its result, with an error's text, has to fit into one
event."""
_HEARD_BEFORE = (
    "the agent was started again after it had heard this, and does not do it twice: `dimos-streams missions {id}`"
    " shows what becomes of it"
)
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InputHandler:
    """Takes in what operators say to an agent, and sees it to the end of the mission that it leads to."""

    work: AgentWork
    approvals: ApprovalRegistry
    stop: StopOrder

    async def say(self, call: Call, text: str, *, now: bool) -> Said:
        """See ``Agent.say``."""
        if self.stop.is_said_by(text):
            return await self._stop_all(call, text)
        loop, missions = self.work.loop, self.work.missions
        if missions.was_begun_before(call.id):
            raise SkillError(_HEARD_BEFORE.format(id=call.id))
        waits = waits_behind(loop, self.approvals, now=now)
        conversation = loop.parts.transcript.conversation
        mission = missions.begin(call.id, text, on_over=conversation.notify)
        seen = conversation.last_number
        await call.update(text[:_LINE], entry={"role": "operator", "text": text[:_LINE]})
        try:
            loop.parts.oversight.control.typed()
            if waits:
                await call.update(waits, entry={"role": "note", "text": waits})
            await self.work.hear(OperatorInput(text, (mission,), now=now))
            await _relay(conversation, call, mission, seen)
        except asyncio.CancelledError:
            mission.end("cancelled")
            mission.let_go()
            raise
        except Exception as error:
            raise _ended_by(error, mission) from error
        return _said(mission)

    async def _stop_all(self, call: Call, input: str) -> Said:
        stopping = asyncio.create_task(self.stop.carry_out(call.id, input), name=f"the stop of {call.id}")
        try:
            await call.update(input[:_LINE], entry={"role": "operator", "text": input[:_LINE]})
        finally:
            text = await outlasting(stopping)  # who no longer waits for it does not take it back
        text = cut_to(text, _SAID_BYTES)
        await call.update(text[:_LINE], entry={"role": "assistant", "text": text[:_LINE]})
        return Said(text=text, reason="completed")


def _said(mission: Mission) -> Said:
    """Return the end of a mission. Raises ``MissionIncompleteError`` for one that was not done."""
    text = cut_to(mission.text, _SAID_BYTES)
    said = Said(text=text, reason=mission.reason, unfinished=mission.unfinished)
    if not completed(mission.reason):
        raise MissionIncompleteError(explained(mission.reason, mission.why, mission.unfinished), result=said)
    return said


async def _relay(conversation: Conversation, call: Call, mission: Mission, seen: int) -> None:
    """Pass on the mission's entries of the conversation that are newer than ``seen``, until the mission is over."""
    while True:
        changed, over = conversation.changed, mission.over
        for entry in conversation.after(seen):
            seen = entry.number
            line = _line(entry)
            if mission.id not in entry.missions or entry.role == "operator" or not line:
                continue
            if entry.role == "progress":
                call.progress(line, entry=entry.to_dict())
            else:
                await call.update(line, entry=entry.to_dict())
        if over:
            return
        await changed.wait()


def _ended_by(error: Exception, mission: Mission) -> SkillError:
    """End a mission whose call of ``say`` fails, because nobody would hear of it any more, nor have a hold on it;
    return the error."""
    _logger.error("mission %s is ended, because the call of say failed: %s", mission.id, error, exc_info=error)
    why = f"what it says could not be passed on ({type(error).__name__}: {error})"
    mission.end("error", why)
    mission.let_go()
    return SkillError(f"the mission was ended, and its calls are cancelled: {why}")


def _line(entry: Entry) -> str:
    """The line of an entry for people who follow the call of ``say``."""
    asked = ", ".join(f"{call.name}({call.arguments[:200]})" for call in entry.tool_calls)
    return "\n".join(part for part in (entry.note, entry.text, asked) if part)[:_LINE]
