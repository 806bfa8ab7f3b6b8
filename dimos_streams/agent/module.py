"""The agent as a module of a blueprint."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel, ConfigDict, Field

from dimos_streams import clock
from dimos_streams.agent.backoff import Backoff
from dimos_streams.agent.calls import CallManager
from dimos_streams.agent.conversation import Conversation, Entry
from dimos_streams.agent.http_gateway import HttpGateway
from dimos_streams.agent.inbox import Inbox
from dimos_streams.agent.local_gateway import LocalGateway
from dimos_streams.agent.loop import AgentLoop, LoopSettings
from dimos_streams.agent.missions import Mission
from dimos_streams.agent.models import create_model
from dimos_streams.agent.queue import MessageQueue, OperatorWords
from dimos_streams.errors import SkillUnavailableError
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.skill import Call, skill
from dimos_streams.tool_stream.gateway import SkillGateway

_LINE = 2000

SYSTEM_PROMPT = """\
You control a robot through skills. Call a skill when the operator asks for something that it does. Some skills go \
on after they have answered; their news reaches you as messages in square brackets that name the call. Tell the \
operator briefly what happens. If something fails, say why. If there is nothing to add, answer with nothing."""


class AgentConfig(ModuleConfig):
    """Of the agent."""

    model: str = "offline"
    """``"offline"`` (commands, no LLM) or ``"scripted:FILE"``."""
    system_prompt: str = SYSTEM_PROMPT
    max_iterations: int = Field(20, ge=1)
    """Answers of the model in one turn."""
    answer_timeout_s: float = Field(10.0, gt=0)
    """For a call's first update or close; after it the model is told that the call goes on."""
    queue_capacity: int = Field(1000, ge=1)
    conversation_entries: int = Field(1000, ge=10)
    """Entries of the record that are kept."""


class Said(BaseModel):
    """How a mission ended."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str
    """The model's last words."""
    reason: str
    """Why its last turn ended: ``completed``, ``max_iterations``, ``error``, …"""

    def __str__(self) -> str:
        return self.text or self.reason


class Agent(Module):
    """Reads the tool streams of its calls into its message queue and drives a model with them.

    The caller of its calls is its name. Where no bridge answers at the start, it waits for one. It begins with what
    happens from now on, and takes over calls of its name that are open.
    """

    config: AgentConfig

    async def start(self) -> None:
        """Raises ``UserError`` for a model that there is not."""
        config = self.config
        self._model = create_model(config.model)
        self._gateway = self._choose_gateway()
        self._queue = MessageQueue(config.queue_capacity)
        self.conversation = Conversation(config.system_prompt, max_entries=config.conversation_entries)
        self.health = "waits for the bridge"
        # The moment is in the keys so that a restarted agent does not repeat the ones it used before.
        prefix = f"{self.name}/{clock.utime():x}"
        self._calls = CallManager(self._gateway, self.name, self._queue.put, key_prefix=prefix)

    async def run(self) -> None:
        """See ``Module``."""
        place = await self._take_up()
        inbox = Inbox(self._gateway, self.name, self._calls, place=place)
        loop = AgentLoop(
            model=self._model,
            gateway=self._gateway,
            calls=self._calls,
            queue=self._queue,
            conversation=self.conversation,
            settings=LoopSettings(
                max_iterations=self.config.max_iterations, answer_timeout_s=self.config.answer_timeout_s
            ),
            module=self.name,
        )
        self.spawn(inbox.run(), name="inbox")
        await loop.run()

    async def stop(self) -> None:
        """See ``Module``."""
        gateway = getattr(self, "_gateway", None)
        if isinstance(gateway, HttpGateway):
            gateway.close()

    @skill(audience="operator")
    async def say(self, call: Call, text: str) -> Said:
        """Tell the agent something, and hear what it says and does until the mission is over.

        Cancelling it cancels the calls that it led to.

        Args:
            text: What to tell the agent, for instance "follow the person in red".
        """
        mission = Mission(call.id, self.conversation.notify)
        seen = self.conversation.last_number
        await call.update(text[:_LINE], entry={"role": "operator", "text": text[:_LINE]})
        try:
            await self._queue.put(OperatorWords(text, (mission,)))
            await self._relay(call, mission, seen)
        except asyncio.CancelledError:
            mission.cancelled = True
            await self._calls.cancel(
                (open_call for open_call in self._calls.open if mission in open_call.missions),
                "the operator has withdrawn what led to this call",
            )
            raise
        return Said(text=mission.text, reason=mission.reason)

    async def _relay(self, call: Call, mission: Mission, seen: int) -> None:
        """Pass on the conversation's entries from ``seen`` on, as far as they are the mission's, until it is over."""
        while True:
            changed, over = self.conversation.changed, mission.over
            for entry in self.conversation.after(seen):
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

    async def _take_up(self) -> int:
        """Wait for the bridge; take over what is open there. The place to read on from."""
        backoff = Backoff(self.random)
        while True:
            try:
                place = await self._gateway.place()
                adopted = await self._calls.adopt_open()
                break
            except SkillUnavailableError as error:
                self.health = str(error)
                await asyncio.sleep(backoff.next())
        self.health = "ok"
        for call in adopted:
            text = f"{call.skill} (call {call.call_id}) runs from before this agent was started"
            self.conversation.add("note", text, skill=call.skill, call_id=call.call_id)
        return place

    def _choose_gateway(self) -> SkillGateway:
        services = self.context.services
        if clock.is_virtual() or services.get(SkillGateway) is not None:  # type: ignore[type-abstract]
            return LocalGateway(services)
        return HttpGateway(self.context.bridge_url, rng=self.random, token=self.context.token)


def _line(entry: Entry) -> str:
    """An entry for people who follow the call of ``say``."""
    asked = ", ".join(f"{call.name}({call.arguments[:200]})" for call in entry.tool_calls)
    return "\n".join(part for part in (entry.text, asked) if part)[:_LINE]
