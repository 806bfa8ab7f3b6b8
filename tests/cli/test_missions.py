"""The command that lists and shows recorded missions."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.agent.record.mission_record import MissionRecord
from dimos_streams.agent.record.read_record import read_missions
from dimos_streams.agent.record.record_files import FOLDER
from dimos_streams.cli.commands.of_runs.missions import _text
from dimos_streams.operator.messages.agent import AgentEvent
from tests.cli.machine import Machine

USAGE = {"input_tokens": 100, "output_tokens": 20, "cached_tokens": 0, "cost": 0.25}


def events(mission: str, input: str, *, over: bool) -> list[AgentEvent]:
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("mission_start", {"id": mission, "text": input}),
        ("input", {"text": input}),
        ("usage", USAGE),
        ("answer", {"text": "I am there", "finish": "stop", "tool_calls": []}),
        ("usage", USAGE),
        *([("done", {"reason": "completed", "text": "I am there"})] if over else []),
    ]
    return [
        AgentEvent(number=n, utime=1_700_000_000_000_000, agent="agent", kind=kind, missions=(mission,), data=data)
        for n, (kind, data) in enumerate(kinds, 1)
    ]


def test_missions_are_listed_with_what_they_cost_and_shown(machine: Machine) -> None:
    assert "there are no runs yet" in machine("missions").err
    folder = machine.state / "runs" / "20260101-patrol-aa" / FOLDER
    record = MissionRecord(folder, "agent")
    record.open()
    undone = [
        AgentEvent(number=n, utime=1_700_000_000_000_000, agent="agent", kind="undo", missions=("abc1",), data=data)
        for n, data in enumerate(
            (
                {"phase": "start", "call_id": "c1", "skill": "go_to"},
                {"phase": "end", "call_id": "c1", "skill": "go_to", "how": "undone", "text": "back"},
                {"phase": "end", "call_id": "c0", "skill": "say_hello", "how": "impossible", "text": "no undo"},
            ),
            10,
        )
    ]
    for event in (*events("abc1", "go to the door", over=True), *undone, *events("abd2", "and back", over=False)):
        record.write(event)
    record.close()
    listed = machine("missions")
    assert listed.code == 0
    first, second = (line.split() for line in listed.out.splitlines()[1:])
    assert first[:2] == ["abc1", "agent"]
    assert first[4:] == ["completed,", "1", "call", "undone", "240", "0.5000", "go", "to", "the", "door"]
    assert second[4:6] == ["not", "over"]
    summary = machine("missions", "--json").json[0]
    assert (summary["requests"], summary["cost"], summary["reason"]) == (2, 0.5, "completed")
    assert summary["undone"] == ["c1"]
    shown = machine("missions", "abc")
    assert "answer           I am there  finish=stop" in shown.out
    assert shown.out.splitlines()[-1] == "completed, 1 call undone: 2 requests, 200 + 40 tokens, cost 0.5000"
    whole = machine("missions", "abc1", "--json").json
    assert [event["kind"] for event in whole["events"]][-4] == "done"
    for wrong, said in (("ab", "several missions begin with 'ab'"), ("xyz", "no mission is called 'xyz' in run ")):
        result = machine("missions", wrong)
        assert result.code == 2
        assert said in result.err
    run_id = result.err.partition(" in run ")[2].partition(";")[0]
    assert f"`dimos-streams missions --run {run_id}` lists them" in result.err
    assert machine("missions", "--run", run_id).out == listed.out


def test_missions_of_an_agent_are_in_their_order_also_after_a_step_back_of_the_clock(tmp_path: Path) -> None:
    for agent, began in (("a", {"y": 9, "x": 2, "w": 3}), ("b", {"v": 10})):
        record = MissionRecord(tmp_path, agent)
        record.open()
        for number, (id, s) in enumerate(began.items(), 1):
            utime = 1_700_000_000_000_000 + s * 1_000_000
            data = {"id": id, "text": "go"}
            record.write(
                AgentEvent(number=number, utime=utime, agent=agent, kind="mission_start", missions=(id,), data=data)
            )
        record.close()
    assert [mission.id for mission in read_missions(tmp_path)] == ["y", "x", "w", "v"]


@pytest.mark.feature("A5")
def test_what_does_not_fit_in_a_record_hides_no_mission(machine: Machine) -> None:
    folder = machine.state / "runs" / "20260101-patrol-aa" / FOLDER
    record = MissionRecord(folder, "agent")
    record.open()
    for event in events("abc1", "go to the door", over=True):
        record.write(event)
    record.close()
    odd: list[tuple[str, object]] = [
        *(("mission_start", {}), ("mission_start", {"id": ["a"], "text": ["b"]})),
        *(("usage", {}), ("usage", {"input_tokens": "a"})),
        *(("done", {}), ("done", []), ("done", {"reason": 7, "text": None})),
        ("undo", {"phase": "end", "how": "undone"}),
    ]
    lines = [
        json.dumps({"offset": 0, "event": {"number": 9, "utime": 1, "agent": "agent", "kind": kind, "data": data}})
        for kind, data in odd
    ]
    whole = folder / "agent.abc1.jsonl"
    whole.write_text("\n".join([*lines, whole.read_text().rstrip(), *lines, '{"offset":', ""]))
    (folder / "agent.odd.jsonl").write_text(lines[0])
    (folder / "agent.folder.jsonl").mkdir()
    os.mkfifo(folder / "agent.pipe.jsonl")
    (folder / "agent.zero.jsonl").symlink_to("/dev/zero")
    listed = machine("missions")
    assert listed.code == 0
    (row,) = (line.split() for line in listed.out.splitlines()[1:])
    assert (row[0], row[4:6]) == ("abc1", ["completed", "240"])
    shown = machine("missions", "abc1")
    assert shown.out.splitlines()[-1] == "completed: 2 requests, 200 + 40 tokens, cost 0.5000"
    assert machine("missions", "abc1", "--json").json["began_utime"] == 1_700_000_000_000_000


def test_what_an_event_says_is_in_json() -> None:
    event = events("m", "go", over=False)[3]
    said = {**event.data, "finish": None, "arguments": {"fast": True, "to": None, "name": "é"}, "cut": True}
    assert _text(event.model_copy(update={"data": said})) == (
        'I am there  arguments={"fast": true, "to": null, "name": "é"} cut=true'
    )
