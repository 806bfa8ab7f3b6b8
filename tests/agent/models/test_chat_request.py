"""A conversation in OpenAI's format: what servers refuse of it is repaired."""

from __future__ import annotations

import pytest

from dimos_streams.agent.models.chat.request import chat_messages, chat_tools
from dimos_streams.agent.models.protocol import AssistantMessage, ToolCall, ToolCallDelta, ToolSchema
from dimos_streams.agent.models.tool_call_assembler import ToolCallAssembler


@pytest.mark.feature("B2")
@pytest.mark.parametrize("damaged", ['{"x": 1', '{"x": NaN}', "[1]", '{"x": 1, "x": 90}'])
def test_damaged_arguments_go_back_as_none(damaged: str) -> None:
    calls = (ToolCall("t0", "move", damaged), ToolCall("t1", "move", '{"x": 1}'))
    (sent,) = [message for message in chat_messages([AssistantMessage("", calls)]) if "tool_calls" in message]
    assert [call["function"]["arguments"] for call in sent["tool_calls"]] == ["{}", '{"x": 1}']


@pytest.mark.feature("B2")
def test_a_skill_of_a_long_name_has_a_shorter_one_at_the_models_server() -> None:
    skills = ["turn", *(f"warehouse_north_hall_7_count_what_lies_on_the_shelves_of_the_aisle_{n}" for n in (1, 2))]
    sent = [tool["function"]["name"] for tool in chat_tools([ToolSchema(skill, "", {}) for skill in skills])]
    assert sent[0] == "turn"
    assert len(set(sent)) == 3
    assert max(map(len, sent)) <= 64 < len(skills[1])
    assembler = ToolCallAssembler(skills)
    for index, name in enumerate([*sent, skills[1]]):  # the last as it stands in texts
        for piece in (name[:30], name[30:]):
            assembler.add(ToolCallDelta(index=index, name=piece))
        assembler.add(ToolCallDelta(index=index, arguments="{}"))
    called = [*skills, skills[1]]
    assert assembler.newly_begun() == called
    calls = tuple(each.call for each in assembler.finish(complete=True, new_id=iter("abcd").__next__))
    assert [call.name for call in calls] == called
    (past,) = [message for message in chat_messages([AssistantMessage("", calls)]) if "tool_calls" in message]
    assert [call["function"]["name"] for call in past["tool_calls"]] == [*sent, sent[1]]
