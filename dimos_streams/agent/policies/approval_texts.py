"""Texts about calls that wait for an operator, or were not approved."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from dimos_streams.agent.policies.approval import Approval, Decision
from dimos_streams.agent.policies.canonical import shown
from dimos_streams.common.printable import printable
from dimos_streams.common.readable.shortening import beginning
from dimos_streams.errors import SkillError, suggest
from dimos_streams.operator.known_names import DECISION
from dimos_streams.operator.plan_steps import plan_steps

_SHOWN = 20_000
"""Maximum length of a call in the note that says that it waits, in characters: room for all of each plan, and of each
usual call."""

_SHOWN_ID = 100


def denial(skill: str, arguments: Mapping[str, Any], decision: Decision) -> str:
    """The result that a model is shown for a call that an operator did not approve."""
    why = f": {decision.reason}" if decision.reason else ""
    return f"Not run: {shown(skill, arguments)} was not approved{why}. Do not repeat it as it is."


def request_text(approval: Approval) -> str:
    """The request for a decision, for people who follow the conversation and have no console."""
    why = f" ({printable(approval.reason)})" if approval.reason else ""
    text = _whole(approval)
    hidden = f"{len(text) - _SHOWN} characters are not shown here: `dimos-streams approvals {approval.id}`"
    shown_text = beginning(text, _SHOWN, f"…\n{hidden}")
    return f"Waits for {DECISION}{why}: {shown_text}\n{ways_to(f'{approval.id}@{approval.revision}')}"


def ways_to(reference: str) -> str:
    """The commands that decide on an approval, ``ID@REVISION``."""
    return f"`dimos-streams approve {reference}`, or `reject`"


def unknown_approval(id: str, agent: str, prefix: str, pending: Sequence[str]) -> SkillError:
    """Return the error for an approval that an agent does not remember; ``prefix`` begins the ids of its present
    process."""
    shown_id = repr(beginning(id, _SHOWN_ID))
    near = suggest(id[:_SHOWN_ID], pending)
    if re.fullmatch(rf"{re.escape(agent)}-[0-9a-f]+-[0-9]+", id):
        why = "it was forgotten, or is of an earlier process of the agent"
    elif "@" in id:
        why = "its revision is an argument of its own, `revision`"
    else:
        why = f"those of agent {agent!r} are called {prefix}-1 and so on"
    waiting = ", ".join(pending[:10]) or "none"
    return SkillError(f"no approval has the id {shown_id}{near}: {why} (pending: {waiting})")


def _whole(approval: Approval) -> str:
    """A call with all its arguments; the steps of a plan come first, one per line."""
    skill, arguments = approval.skill, approval.arguments
    steps = plan_steps(skill, approval.module, arguments)
    if steps is None:
        return shown(skill, arguments, sys.maxsize)
    calls = [shown(str(step["skill"]), step["arguments"], sys.maxsize) for step in steps]
    others = {name: value for name, value in arguments.items() if name != "steps"}
    listed = "".join(f"\n{number}. {call}" for number, call in enumerate(calls, 1))
    return f"{printable(skill)} with these steps:{listed}\n{shown('', others, sys.maxsize)}"
