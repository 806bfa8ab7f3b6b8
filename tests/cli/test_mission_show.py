"""What `say` shows: what its mission leads to, and how one sees what goes on beside it."""

from __future__ import annotations

from typing import Any

import pytest

from dimos_streams.cli.bridge_client.calls.mission_show import MissionShow
from dimos_streams.cli.bridge_client.calls.showing import mission_left
from dimos_streams.cli.terminal.approval_text import details
from dimos_streams.cli.terminal.refusals import ways_on
from dimos_streams.errors import CallRejectedError, KeyUsedError
from dimos_streams.operator.messages.agent import ApprovalView
from dimos_streams.tool_stream.event import ToolEvent


def event(call_id: str, type: str, skill: str, caller: str, robot: str = "", **data: Any) -> ToolEvent:
    module = "agent" if skill == "say" else "drive"
    fields = {"utime": 1, "call_id": call_id, "seq": 1, "type": type, "skill": skill, "caller": caller, "text": ""}
    return ToolEvent.from_dict({**fields, "module": module, "robot": robot, "data": data})


OURS = [
    event("m1", "open", "say", "cli"),
    event("c1", "open", "look", "agent"),
    event("c1", "progress", "look", "agent"),
    event("c1.1", "open", "follow", "agent"),
    event("c1.1~1", "open", "turn", "follow"),
    event("c1.1~1", "close", "turn", "follow", outcome="completed"),
    event("c0", "close", "patrol", "agent", outcome="cancelled"),
    event("m1", "update", "say", "cli", entry={"role": "tool", "text": "", "call_id": "c3"}),
    event("c3", "update", "guard", "cron"),
    event("", "gap", "", ""),
    event("m1", "close", "say", "cli", outcome="completed"),
]
OTHERS = [
    event("c9", "progress", "patrol", "agent"),
    event("c8", "open", "move", "cli"),
    event("c8~1", "open", "turn", "move"),
    event("c8", "close", "move", "cli", outcome="completed"),
    event("c7", "open", "move", "agent", robot="robot2"),
    event("m2", "update", "say", "cli", entry={"role": "operator", "text": "hello"}),
    event("c6", "update", "guard", "cron"),
]


def shown(*events: ToolEvent) -> list[ToolEvent]:
    found: list[ToolEvent] = []
    show = MissionShow(found.append, "m1", bridge=" --run 'my run'")
    for each in events:
        show(each)
    return found


def test_a_mission_is_shown_without_what_goes_on_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(*OURS) == OURS
    assert capsys.readouterr().err == ""
    assert shown(OURS[0], *OTHERS, *OURS[1:]) == OURS
    assert capsys.readouterr().err == (
        "patrol of 'agent' goes on beside it: `dimos-streams follow c9 --run 'my run'` shows it, "
        "`dimos-streams calls --run 'my run'` lists all\n"
    )


def test_calls_that_are_over_are_forgotten() -> None:
    show = MissionShow(lambda event: None, "m1")
    show(OURS[0])
    for number in range(100):
        for type in ("open", "close"):
            show(event(f"c{number}", type, "look", "agent"))
        show(event("m1", "update", "say", "cli", entry={"role": "tool", "text": "", "call_id": f"c{number}"}))
    assert show._calls == {"m1"}


def test_nothing_is_said_of_what_says_nothing_or_is_another_conversation(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(OURS[0], OTHERS[1], OTHERS[3], OTHERS[5]) == OURS[:1]
    assert capsys.readouterr().err == ""


def test_an_id_that_somebody_has_forged_is_one_word_to_the_shell_of_who_copies_the_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    forged = "c9; $(touch x)"
    shown(event(forged, "progress", "patrol", "agent"))
    assert f"`dimos-streams follow '{forged}' --run 'my run'` shows it" in capsys.readouterr().err
    assert f"`dimos-streams cancel '{forged}'` ends it" in ways_on(CallRejectedError("no", holder=forged))
    assert f"`dimos-streams follow '{forged}'`" in ways_on(
        KeyUsedError("no", call_id=forged, skill="turn", state="open")
    )
    assert f"`dimos-streams missions '{forged}'`" in mission_left(
        event(forged, "close", "say", "cli", outcome="lost")
    )
    view = ApprovalView(
        id=forged, agent="agent", skill="turn", module="drive", arguments={}, created_utime=1, hidden_characters=7
    )
    assert details(view) == [f"7 characters not shown: dimos-streams approvals '{forged}'"]
