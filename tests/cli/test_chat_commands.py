"""Commands of a chat that were typed wrong: how they are used is said, or which command may be meant."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dimos_streams.cli.bridge_client.calls.event_watch import EventWatch
from dimos_streams.cli.consoles import chat_console
from dimos_streams.cli.consoles.chat_commands import CHAT_COMMANDS, chat_command
from dimos_streams.cli.consoles.chat_console import _HELP, _Chat
from dimos_streams.errors import UserError
from dimos_streams.operator.known_names import ANSWER, DECISION
from dimos_streams.tool_stream.event import EventType, ToolEvent

NOBODY: Any = None


@pytest.mark.parametrize(
    ("typed", "usage"),
    [
        ("approve", "/approve ID [NAME=VALUE]…"),
        ("reject", "/reject ID [REASON]"),
        ("step foo", "/step [on|off|once|ID]"),
        ("abort all", "/abort [rollback]"),
        ("undo 1 2", "/undo [COUNT]"),
        ("approvals a b", "/approvals [ID]"),
        ("pause now", "/pause"),
    ],
)
def test_a_command_that_is_used_otherwise_is_answered_by_its_usage(typed: str, usage: str) -> None:
    name, *arguments = typed.split()
    with pytest.raises(UserError) as caught:
        asyncio.run(chat_command(NOBODY, "", name, arguments))
    assert str(caught.value) == f"usage: {usage} (/help lists the commands)"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("/aprove", "there is no command '/aprove'; did you mean '/approve'? (/help lists them)"),
        ("/skils", "there is no command '/skils'; did you mean '/skills'? (/help lists them)"),
        ("/nonsense", "there is no command '/nonsense' (/help lists them)"),
    ],
)
def test_a_command_that_there_is_not_is_answered_by_the_nearest(typed: str, said: str) -> None:
    chat = _Chat(NOBODY, NOBODY, NOBODY, "say", is_named=True)
    with pytest.raises(UserError) as caught:
        asyncio.run(chat._command(typed, "x1"))
    assert str(caught.value) == said


@pytest.mark.virtual_time
@pytest.mark.parametrize("waits", [f"Waits for {DECISION}: move", f"How far?\n{ANSWER}"])
async def test_a_decision_that_stands_behind_what_waits_for_it_is_read(
    monkeypatch: pytest.MonkeyPatch, waits: str
) -> None:
    taken: list[str] = []
    watch = EventWatch(lambda event: None)
    chat = _Chat(NOBODY, watch, NOBODY, "say", is_named=True)

    async def lines() -> AsyncIterator[str]:
        for line in ("move", "turn", "/approve a1"):
            yield line

    async def take(line: str) -> bool:
        taken.append(line)
        if not line.startswith("/"):
            chat._said.append(line)
            note = {"entry": {"role": "note", "text": waits}} if line == "move" else {}
            watch.receive(_said(line, "update", note))
        else:
            for call_id in chat._said:
                watch.receive(_said(call_id, "close", {"outcome": "completed"}))
        return True

    monkeypatch.setattr(chat_console, "_lines_of_stdin", lines)
    monkeypatch.setattr(chat, "_take", take)
    async with asyncio.timeout(600):
        assert await chat.from_pipe() == 0
    assert taken == ["move", "turn", "/approve a1"]


def test_a_line_of_another_encoding_is_said_with_marks_for_what_nobody_can_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def all_lines() -> list[str]:
        async with asyncio.timeout(30):
            return [line async for line in chat_console._lines_of_stdin()]

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"go\nh\xe9 ho\r\nstop"), encoding="utf-8"))
    assert [line.strip() for line in asyncio.run(all_lines())] == ["go", "h\ufffd ho", "stop"]


@pytest.mark.virtual_time
async def test_a_line_waits_for_the_second_question_of_who_has_the_reply_to_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[str] = []
    watch = EventWatch(lambda event: None)

    def ask(question: str) -> None:
        watch.receive(_said("go", "update", {"entry": {"role": "note", "text": f"{question}\n{ANSWER}"}}))

    class Agent:
        async def call(self, skill: str, arguments: dict[str, str], caller: str) -> str:
            heard.append(text := arguments["text"])
            if text == "go":
                ask("How far?")
                return text
            watch.receive(_said(text, "close", {"outcome": "completed"}))
            answered = asyncio.get_running_loop().call_later
            if text == "far":
                answered(1.0, watch.receive, _said("go", "progress", {}))
                answered(2.0, heard.append, "How fast?")
                answered(2.0, ask, "How fast?")
            else:
                answered(1.0, watch.receive, _said("go", "close", {"outcome": "completed"}))
            return text

    async def lines() -> AsyncIterator[str]:
        for line in ("go", "far", "fast"):
            yield line

    monkeypatch.setattr(chat_console, "_lines_of_stdin", lines)
    monkeypatch.setattr(chat_console, "find_say", lambda *_: asyncio.sleep(0, "say"))
    chat: Any = _Chat(Agent(), watch, NOBODY, "say", is_named=True)  # type: ignore[arg-type]
    async with asyncio.timeout(600):
        assert await chat.from_pipe() == 0
    assert heard == ["go", "far", "How fast?", "fast"]


def test_what_is_said_to_another_agent_replies_to_no_question() -> None:
    watch = EventWatch(lambda event: None)
    chat = _Chat(NOBODY, watch, NOBODY, "say", is_named=True)
    chat._said.append("go")
    watch.receive(_said("go", "update", {"entry": {"role": "note", "text": f"How far?\n{ANSWER}"}}))
    assert [*chat._questions("say")] == ["go"]
    assert chat._questions("robot2_say") == {}


def _said(call_id: str, type: EventType, data: dict[str, Any]) -> ToolEvent:
    who = {"call_id": call_id, "module": "agent", "skill": "say", "caller": "cli"}
    return ToolEvent.from_dict({"utime": 1, "seq": 1, "type": type, "text": "", "data": data, **who})


def test_the_help_has_each_command_as_it_is_used() -> None:
    shown = " ".join(_HELP.split())
    assert [name for name, takes in CHAT_COMMANDS.items() if f"/{name}{takes}" not in shown] == []
