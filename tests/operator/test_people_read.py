"""How what people write and read is understood: whom they mean, what they have seen, how a call has ended."""

from __future__ import annotations

import pytest

from dimos_streams.common.names import MAX_NAME
from dimos_streams.errors import UnknownAgentError
from dimos_streams.operator.agents import AgentView, addressee, choose_agent, is_look, outcome_for_people
from dimos_streams.operator.approval_reference import ApprovalReference
from dimos_streams.tool_stream.event import ToolEvent


@pytest.mark.parametrize(
    ("skill", "of_agent", "outcome"),
    [("say", True, "cancelled"), ("say", False, "failed"), ("drive", True, "failed")],
)
def test_only_a_mission_that_an_operator_has_ended_is_shown_as_cancelled(
    skill: str, of_agent: bool, outcome: str
) -> None:
    data = {"outcome": "failed", "result": {"reason": "aborted"}}
    closed = ToolEvent(
        utime=1, call_id="c", seq=2, type="close", module="agent", skill=skill, caller="cli", text="", data=data,
        of_agent=of_agent,
    )  # fmt: skip
    assert outcome_for_people(closed) == outcome


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("robot2: move 0.3", "robot2"),
        ("see here: a wall", ""),
        ("robot2", ""),
        (f"{'x' * MAX_NAME}: go", "x" * MAX_NAME),
        (f"{'x' * MAX_NAME}x: go", ""),
    ],
)
def test_what_stands_before_a_colon_may_be_whom_a_text_is_for(text: str, name: str) -> None:
    assert addressee(text) == name


@pytest.mark.parametrize(
    ("text", "is_whole"), [("agent-1f-2", True), ("a@1", True), ("agent-1f", False), ("a", False)]
)
def test_an_approval_whose_revision_was_seen_is_called_by_its_whole_id(text: str, is_whole: bool) -> None:
    assert ApprovalReference.of(text).is_whole is is_whole


@pytest.mark.parametrize(
    ("wanted", "found"), [("robot1", "robot1"), ("robot1/arm", "robot1/arm"), ("robot", None), ("robot1/ar", None)]
)
def test_an_agent_whose_whole_name_is_said_is_meant_rather_than_those_below_it(
    wanted: str, found: str | None
) -> None:
    agents = [AgentView(name, "", reports=True, available=True) for name in ("robot1", "robot1/arm")]
    if found is None:
        with pytest.raises(UnknownAgentError, match=f"no agent is called '{wanted}'"):
            choose_agent(agents, wanted)
    else:
        assert choose_agent(agents, wanted).name == found


@pytest.mark.parametrize(
    ("skill", "caller", "of_agent", "is_a_look"),
    [("approvals", "cli", True, True), ("approvals", "cli", False, False), ("pause", "cli", True, False)],
)
def test_a_robots_skill_that_is_called_as_an_agents_is_somebodys_call(
    skill: str, caller: str, of_agent: bool, is_a_look: bool
) -> None:
    opened = ToolEvent(
        utime=1, call_id="c", seq=1, type="open", module="agent", skill=skill, caller=caller, text="", data={},
        of_agent=of_agent,
    )  # fmt: skip
    assert is_look(opened) is is_a_look
