"""The decisions and answers that an agent waits for, as the state of its module says it to everybody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from pydantic import ValidationError

from dimos_streams.common.schemas.frozen_model import FrozenModel

WAITING: Final = "agent"
"""The key of it in the module's state."""


class Waiting(FrozenModel):
    """The mode in which calls of an agent begin, why, the number of those that wait for a decision, and the model's
    question."""

    mode: Literal["running", "paused", "stepping"] = "running"
    paused_for: str = ""
    """Why it is paused and who has paused it, shortened."""
    approvals: int = 0
    question: str = ""
    """What the operator is asked, shortened; the next input is the answer."""

    def state(self) -> dict[str, Any]:
        """A module's state that says so; empty if nobody has to do anything."""
        said = self.model_dump(mode="json", exclude_defaults=True)
        return {WAITING: said} if said else {}


def waiting_lines(module: str, state: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines for operators about what waits for them at a module, each with the command that goes on."""
    try:
        waiting = Waiting.model_validate(state.get(WAITING, {}))
    except ValidationError:  # another module's state, or that of another version
        return
    if waiting.mode == "paused":
        yield f"PAUSED {module}, until `resume`{f': {waiting.paused_for}' if waiting.paused_for else ''}"
    elif waiting.mode == "stepping":
        yield f"STEPPING {module}: each call waits for `step`, until `step off`"
    if waiting.approvals:
        calls = "1 call waits" if waiting.approvals == 1 else f"{waiting.approvals} calls wait"
        yield f"WAITING {module}: {calls} for a decision; `approvals` lists them"
    if waiting.question:
        yield f"WAITING {module}: for the answer to {waiting.question!r}; `say` gives it"
