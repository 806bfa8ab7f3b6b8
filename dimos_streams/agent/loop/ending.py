"""Why a turn stops, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass

from dimos_streams.agent.loop.model_response import Answer
from dimos_streams.agent.missions.end_reasons import of_last_answer

LOOPING = "repetition"
INTERRUPTED = "interrupted"
"""The operator had input that could not wait."""
_WHY_SETTLED = {
    "cancelled": "the operator has withdrawn this",
    "aborted": "the operator has aborted the mission",
    INTERRUPTED: "the operator has something more urgent to say; calls that run go on",
}


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a turn stops."""

    reason: str
    note: str = ""
    """For people, where the reason alone does not say it."""
    why: str = ""
    """The same, where the conversation has it already."""
    ends_missions: bool = False
    """Nothing more may be done for the missions: what they have begun is ended too."""

    @property
    def label(self) -> str:
        """The reason as the model finds it in the conversation, with what the operator said to it."""
        return f"{self.reason}: {self.why}" if self.reason == "aborted" and self.why else self.reason

    @property
    def why_settled(self) -> str:
        """The result that the model is shown of calls that it asked for and that got none."""
        if self.reason == "aborted" and self.why:
            return f"{_WHY_SETTLED['aborted']}: {self.why}"
        return _WHY_SETTLED.get(self.reason, f"{self.reason}{f' ({self.note})' if self.note else ''}")


def ending_of(answer: Answer) -> Ending:
    """How a turn ends with an answer that asks for nothing."""
    reason, note = of_last_answer(answer.finish)
    return Ending(reason, note, why=answer.why_cut)
