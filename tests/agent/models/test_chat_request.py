"""A conversation in OpenAI's format: what servers refuse of it is repaired."""

from __future__ import annotations

import pytest

from dimos_streams.agent.models.chat.request import chat_messages
from dimos_streams.agent.models.protocol import AssistantMessage, ToolCall


@pytest.mark.feature("B2")
@pytest.mark.parametrize("damaged", ['{"x": 1', '{"x": NaN}', "[1]", '{"x": 1, "x": 90}'])
def test_damaged_arguments_go_back_as_none(damaged: str) -> None:
    calls = (ToolCall("t0", "move", damaged), ToolCall("t1", "move", '{"x": 1}'))
    (sent,) = [message for message in chat_messages([AssistantMessage("", calls)]) if "tool_calls" in message]
    assert [call["function"]["arguments"] for call in sent["tool_calls"]] == ["{}", '{"x": 1}']
