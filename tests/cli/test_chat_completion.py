"""What Tab completes in a chat."""

from __future__ import annotations

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from dimos_streams.cli.consoles.chat_completion import ChatCompleter
from dimos_streams.cli.consoles.chat_console import COMMANDS
from dimos_streams.tool_stream.event import ToolEvent


def event(call_id: str, skill: str) -> ToolEvent:
    who = {"call_id": call_id, "module": "agent", "skill": skill, "caller": "cli"}
    return ToolEvent.from_dict({"utime": 1, "seq": 1, "type": "open", "text": "", "data": {}, **who})


CALLS = {call_id: event(call_id, skill) for call_id, skill in (("ab1", "move"), ("ab2", "say"), ("ab3", "approvals"))}


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("/ca", ["/calls", "/cancel"]),
        ("/appr", ["/approvals", "/approve"]),
        ("/cancel ", ["/cancel ab1", "/cancel ab2"]),
        ("/cancel ab2", ["/cancel ab2"]),
        ("/step o", ["/step off", "/step on", "/step once"]),
        ("/abort ", ["/abort rollback"]),
        ("/cancel ab1 ", []),
        ("/now ab", []),
        ("ab", []),
        ("", []),
    ],
)
def test_commands_and_open_calls_are_completed(typed: str, offered: list[str]) -> None:
    completer = ChatCompleter(COMMANDS, CALLS)
    found = completer.get_completions(Document(typed), CompleteEvent(completion_requested=True))
    assert [typed[: len(typed) + each.start_position] + each.text for each in found] == offered
