"""What agents report fits into events, and comes out of them as it went in."""

from __future__ import annotations

import json

import pytest

from dimos_streams.agent.record.agent_events import reported
from dimos_streams.common.json.depth import is_deeper
from dimos_streams.common.json.writing import json_text
from dimos_streams.errors import UnknownAgentError
from dimos_streams.operator.agents import agents_among, choose_agent
from dimos_streams.operator.messages.agent import AgentEvent, AgentSnapshot, ConversationEntry, QueueView
from dimos_streams.operator.messages.run import SkillLine
from dimos_streams.operator.reporting import MAX_REPORT, event_data, report_of, snapshot_data
from dimos_streams.tool_stream.protocol.bounds import MAX_DATA_DEPTH


def event(**data: object) -> AgentEvent:
    return AgentEvent(number=1, utime=2, agent="agent", kind="text", missions=("m",), data=data)


def snapshot(**more: object) -> AgentSnapshot:
    fields = {"agent": "agent", "utime": 1, "number": 2, "state": "idle", "model": "offline", **more}
    return AgentSnapshot.model_validate({**fields, "queue": QueueView(waiting=0, capacity=1)})


def test_reports_come_out_as_they_went_in() -> None:
    happened, looks = event(text="hello", nested={"a": [1, None]}), snapshot(calls=("c1",))
    assert report_of(event_data(happened)) == happened
    assert report_of(snapshot_data(looks)) == looks
    assert report_of({"text": "reporting"}) is None
    with pytest.raises(ValueError, match="number"):
        report_of({"event": {"kind": "text"}})


@pytest.mark.parametrize(
    "data",
    [
        {"text": "x" * 100_000},
        {"text": "ü" * 100_000, "b": ["y" * 9000] * 50},
        {f"key{number}": "z" * 500 for number in range(1000)},
        {"deep": {"list": [["w" * 3000] * 20] * 20}},
        {"arguments": json.loads('{"a":[' * 60 + "]}" * 60)},
    ],
)
def test_what_is_too_long_is_shortened_and_says_so(data: dict[str, object]) -> None:
    packed = event_data(event(**data))
    assert len(json_text(packed["event"])) <= MAX_REPORT
    assert not is_deeper(json_text(packed), MAX_DATA_DEPTH)
    reported = report_of(packed)
    assert isinstance(reported, AgentEvent)
    assert reported.data["shortened"] is True


def test_an_answer_is_reported_whole_beside_long_signatures() -> None:
    signed = [{"type": "reasoning.encrypted", "data": "x" * 9000}] * 6
    call = {"id": "a", "name": "look", "arguments": "{}"}
    told = {"text": "t" * 3000, "finish": "stop", "tool_calls": [call], "thoughts": "h" * 9000}
    more = {
        "tool_calls": [{**call, "extra": {"signature": signed}}],
        "thought_details": {"reasoning_details": signed},
    }
    answer = event(**{**told, **more}).model_copy(update={"kind": "answer"})
    assert report_of(event_data(reported(answer))) == answer.model_copy(update={"data": told})
    assert reported(event(thought_details=1)) == event(thought_details=1), "it is no answer"


def test_of_a_snapshot_the_oldest_entries_go_first() -> None:
    entries = tuple(ConversationEntry(number=n, role="operator", text="x" * 1000) for n in range(200))
    packed = snapshot_data(snapshot(conversation=entries, calls=tuple(f"c{n}" for n in range(10_000))))
    assert len(json_text(packed["snapshot"]).encode()) <= MAX_REPORT
    some = snapshot_data(snapshot(conversation=entries))["snapshot"]["conversation"]
    assert some[-1]["number"] == 199
    assert 0 < len(some) < 200


def line(name: str, module: str, audience: str = "operator", *, agent: bool = True) -> SkillLine:
    return SkillLine(name=name, module=module, description="", available=True, audience=audience, agent=agent)


def test_agents_are_those_that_say_so() -> None:
    offered = [
        line("robot1_say", "robot1/agent"),
        line("robot1_report", "robot1/agent"),
        line("say", "chatty"),
        line("say", "parrot", "everyone", agent=False),
        line("say", "talking/clock", agent=False),
        line("essay", "writer", agent=False),
    ]
    agents = agents_among(offered)
    assert [(agent.name, agent.prefix, agent.reports) for agent in agents] == [
        ("chatty", "", False),
        ("robot1/agent", "robot1_", True),
    ]
    assert choose_agent(agents, "robot1").skill("pause") == "robot1_pause"
    assert choose_agent(agents, "robot1_say").name == "robot1/agent"
    for wanted, words in (("", "several"), ("robot", "did you mean|no agent is called 'robot'")):
        with pytest.raises(UnknownAgentError, match=words):
            choose_agent(agents, wanted)
    with pytest.raises(UnknownAgentError, match="no agent is here"):
        choose_agent([])
