"""Lets an agent ask another model than before, or the same one again."""

from __future__ import annotations

from dataclasses import dataclass

from dimos_streams.agent.loop.loop import AgentLoop
from dimos_streams.agent.missions.mission import ids
from dimos_streams.agent.model_factory import ModelFactory
from dimos_streams.agent.models.retrying import Retry
from dimos_streams.agent.record.agent_events import EventKind


@dataclass(frozen=True, slots=True)
class ModelSwitch:
    """Replaces the model that a loop asks, and records which one it is and when it is asked again."""

    factory: ModelFactory
    loop: AgentLoop

    @property
    def name(self) -> str:
        """The name of the model that is asked at the moment."""
        return self.loop.parts.model.name

    def use(self, spec: str) -> None:
        """Ask another model from the next answer on, also in sub-agents that have none of their own. Raises
        ``UserError`` if it can't be made. ``close_replaced`` closes the one before."""
        was = self.name
        self.loop.parts.model.replace(self.factory.in_use(spec))
        self.loop.parts.transcript.emit(EventKind.MODEL_SWITCH, (), model=spec, was=was)

    def note_retry(self, retry: Retry) -> None:
        """Record that a model is asked again for the present turn."""
        self.loop.parts.transcript.emit(
            EventKind.RETRY,
            ids(self.loop.turn.missions) if self.loop.turn else (),
            text=f"The model is asked again in {retry.delay_s:.1f} s: {retry.error}",
            error=str(retry.error),
            attempt=retry.attempt,
            attempts=retry.attempts,
            delay_s=round(retry.delay_s, 3),
        )

    async def close_replaced(self) -> None:
        """Close the models that are not asked any more. While a turn may still hear one of them, none is closed."""
        if self.loop.turn is None:
            await self.loop.parts.model.close_replaced()
