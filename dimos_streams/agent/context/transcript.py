"""The transcript of a loop: the events that it logs, and the conversation that they make for its model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dimos_streams.agent.context.conversation import Conversation
from dimos_streams.agent.context.results import ResultPipeline
from dimos_streams.agent.models.protocol import ModelRequest, ToolSchema
from dimos_streams.agent.record.agent_events import Emit, EventKind, EventSink


@dataclass(frozen=True, slots=True)
class LoopTranscript:
    """The events that a loop logs, and the conversation that is made of them."""

    events: EventSink
    conversation: Conversation
    results: ResultPipeline
    """Keeps results within bounds: new ones before they are logged, old ones before the model sees them again."""

    @property
    def emit(self) -> Emit:
        """Logs an event."""
        return self.events.emit

    def request(self, tools: tuple[ToolSchema, ...]) -> ModelRequest:
        """Return the conversation as it stands now, for the model to answer."""
        return ModelRequest(self.results.mask(self.conversation.messages()), tools)

    def close_unanswered(self, missions: Sequence[str], text: str, finish: str) -> None:
        """Close what the model has not answered, if there is any, with an answer in its place: no later turn may take
        it up again."""
        if self.conversation.awaits_answer:
            self.emit(EventKind.ANSWER, missions, text=text, finish=finish, tool_calls=[])
