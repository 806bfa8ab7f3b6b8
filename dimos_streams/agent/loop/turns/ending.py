"""The ending of a turn: why it stops, and what is said of that."""

from __future__ import annotations

from dataclasses import dataclass

from dimos_streams.agent.loop.turns.model_response import ModelAnswer
from dimos_streams.agent.missions.end_reasons import of_last_answer
from dimos_streams.agent.missions.mission import Mission

INTERRUPTED = "interrupted"
"""The reason of a turn that stops because the operator had input that could not wait."""
_WHY_NO_RESULT = {
    "cancelled": "the operator has withdrawn this",
    "aborted": "the operator has aborted the mission",
    INTERRUPTED: "the operator has something more urgent to say; calls that run go on",
}


@dataclass(frozen=True, slots=True)
class Ending:
    """The reason a turn stops, with what is said of it."""

    reason: str
    note: str = ""
    """A text for people, where the reason alone does not say enough."""
    why: str = ""
    """Such a text that is in the conversation already, so that no note has to say it to the model."""
    about: tuple[str, ...] = ()
    """The ids of the missions that the reason is about; empty if it is about all whose input was heard."""
    ends_missions: bool = False
    """True if nothing more may be done for the missions: what they have begun is ended too."""
    outermost: Mission | None = None
    """The mission that ends then with all its parts, where that is one that the turn's missions are part of."""

    @property
    def label(self) -> str:
        """The reason as the model finds it in the conversation, with what the operator said to it."""
        return f"{self.reason}: {self.why}" if self.reason == "aborted" and self.why else self.reason

    @property
    def why_no_result(self) -> str:
        """The result that the model is shown for calls that it asked for and that got none."""
        if self.reason == "aborted" and self.why:
            return f"{_WHY_NO_RESULT['aborted']}: {self.why}"
        return _WHY_NO_RESULT.get(self.reason, f"{self.reason}{f' ({self.note})' if self.note else ''}")


def ending_of(answer: ModelAnswer, *, ignored: bool) -> Ending:
    """The ending of a turn whose last answer asks for nothing; ``ignored`` as in ``of_last_answer``."""
    reason, note = of_last_answer(answer.finish, ignored=ignored)
    return Ending(reason, note, why=answer.why_cut, about=answer.about)
