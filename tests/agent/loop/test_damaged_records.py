"""Whatever is in the files of a record, an agent begins: what does not fit is skipped, and all else counts."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import is_typeddict

from dimos_streams.agent.control.control import Mode
from dimos_streams.agent.record import read_record
from dimos_streams.agent.record.agent_events import KINDS, EventKind
from dimos_streams.agent.record.data_check import recorded
from dimos_streams.agent.record.mission_record import MissionRecord
from dimos_streams.agent.record.read_record import is_outdated, read_lines, read_missions
from dimos_streams.agent.resumption.reader import read_resumption
from dimos_streams.tool_stream.event import ToolEvent
from tests.agent.loop.agent_in_memory import AgentInMemory, fields_of
from tests.agent.loop.function_model import FunctionModel, says
from tests.agent.loop.line_world import LineWorld
from tests.agent.loop.test_phases import rows_of_document

pytestmark = pytest.mark.feature("B10")


FIELDS = sorted(set().union(*map(fields_of, KINDS)))


def line(number: int, kind: str, data: object, missions: object = ("m0",)) -> bytes:
    event = {"number": number, "utime": 1, "agent": "agent", "kind": kind, "missions": missions, "data": data}
    return json.dumps({"offset": 0, "event": event}).encode() + b"\n"


GOOD = [
    (1, "mission_start", {"id": "m0", "text": "follow her"}),
    (2, "input", {"text": "follow her"}),
    (3, "usage", {"input_tokens": 10, "output_tokens": 2, "cost": None}),
    (4, "answer", {"text": "I do", "finish": "stop", "tool_calls": []}),
]


def restarted(folder: Path) -> AgentInMemory:
    return LineWorld().with_model(FunctionModel(lambda request: says("hello")), folder)


def test_each_kind_has_a_type_for_its_data_and_each_phase_its_own() -> None:
    assert all(is_typeddict(type) for kind in KINDS.values() for type in kind.types)
    phases = {
        kind: [get_type_hints(type)["phase"] for type in kind.types] for kind in KINDS.values() if kind.types[1:]
    }
    assert phases.keys() == {"step", "abort", "undo"}
    assert all(len(set(each)) == len(each) for each in phases.values())


def test_the_fields_of_the_record_are_documented() -> None:
    documented = {kind.strip("`"): set(re.findall(r"\w+", data)) for kind, _, data in rows_of_document("Events")}
    for kind in KINDS:
        assert fields_of(kind) - {"sub", "phase"} <= documented[kind], kind


@pytest.mark.virtual_time
async def test_an_agent_begins_whatever_is_in_its_record(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    good = [line(number, kind, data) for number, kind, data in GOOD]
    odd = [
        line(100 + number, kind, data, missions)
        for number, (kind, data, missions) in enumerate(
            (kind, data, missions)
            for kind in (*KINDS, "of a later version")
            for data in (
                *({}, [], {name: ["a"] for name in FIELDS}, {name: {"a": None} for name in FIELDS}),
                *({**dict.fromkeys(FIELDS, 7), "phase": phase} for phase in ("on", "start", "end")),
                {"event": {"seq": "a"}, "phase": "on", "lesson": "a"},
                {"sub": ["a"]},
                {"reason": "aborted", "turn_goes_on": True, "boot_s": 1e300},
            )
            for missions in ([], ["m0"])
        )
    ]
    (tmp_path / "agent.m0.jsonl").write_bytes(b"".join([*odd, *good, b'{"offset":1e300}\n', b"\xff\n", good[0][:40]]))
    (tmp_path / "agent.general.jsonl").write_bytes(b"".join(odd))
    (tmp_path / "agent.m1.jsonl").write_bytes(line(90, "mission_start", {}))
    (tmp_path / "agent.m2.jsonl").write_bytes(line(91, "mission_start", {"id": "m0", "text": "another's"}))
    (tmp_path / "agent.zzdir.jsonl").mkdir()
    os.mkfifo(tmp_path / "agent.pipe.jsonl")
    (tmp_path / "agent.zero.jsonl").symlink_to("/dev/zero")
    async with restarted(tmp_path) as agent:
        (text,) = [entry.text for entry in agent.core.conversation.entries if entry.role == "operator"]
        assert text == "follow her"
        assert set(agent.core.loop.missions) <= {"m0"}
        stop = agent.core.loop.begin_abort("the operator's word")
        assert stop.reason == "the operator's word"
    assert caplog.text.count("agent.m0.jsonl: line ") == 1
    assert re.search(r"left out of the mission record: .*agent\.zzdir\.jsonl", caplog.text)


@pytest.mark.virtual_time
async def test_what_other_kinds_have_in_the_fields_of_one_kind_is_no_event_to_go_on_from(tmp_path: Path) -> None:
    update = ToolEvent(
        utime=1, call_id="c1", seq=3, type="update", module="a", skill="drive", caller="agent", text=""
    )
    odd: list[tuple[str, dict[str, Any]]] = [
        ("note", {"text": "a", "tool_calls": 7}),
        ("input", {"text": "a", "tool_calls": [{"id": "t1"}]}),
        ("update", {"text": "b", "call_id": "c1", "event": update.to_dict()}),
    ]
    lines = [line(number, kind, data) for number, kind, data in GOOD]
    lines += [line(50 + number, kind, data) for number, (kind, data) in enumerate(odd)]
    (tmp_path / "agent.m0.jsonl").write_bytes(b"".join(lines))
    async with restarted(tmp_path) as agent:
        assert "follow her" in [entry.text for entry in agent.core.conversation.entries]
        assert [call.skill for call in agent.core.calls.known.open] == ["drive"]


def least(schema: dict[str, Any], definitions: dict[str, Any]) -> Any:
    """The least that fits a schema."""
    if "$ref" in schema:
        return least(definitions[schema["$ref"].split("/")[-1]], definitions)
    for choices in ("enum", "anyOf"):
        if choices in schema:
            first = schema[choices][0]
            return least(first, definitions) if choices == "anyOf" else first
    if schema["type"] == "object":
        required = schema.get("required", ())
        return {name: least(schema["properties"][name], definitions) for name in required}
    values = {"string": "x", "boolean": False, "array": [], "null": None, "integer": 1, "number": 1}
    return schema.get("const", values[schema["type"]])


@pytest.mark.virtual_time
async def test_an_agent_goes_on_from_events_that_have_no_more_than_they_must(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    schemas = [recorded((type,)).json_schema() for kind in KINDS.values() for type in kind.types]
    kinds = [kind for kind in KINDS.values() for _ in kind.types]
    whole = [least(schema, schema.get("$defs", {})) for schema in schemas]
    lines = [line(number, kind, data) for number, kind, data in GOOD]
    for sub in ({}, {"sub": "m0/1"}):
        for kind, data in zip(kinds, whole, strict=True):
            lines.append(line(50 + len(lines), kind, {**data, **sub}))
    (tmp_path / "agent.m0.jsonl").write_bytes(b"".join(lines))
    async with restarted(tmp_path) as agent:
        assert "follow her" in [entry.text for entry in agent.core.conversation.entries]
        assert "skipped" not in caplog.text


def test_only_files_of_this_user_that_have_an_end_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "agent.m0.jsonl"
    path.write_bytes(line(*GOOD[0]))
    assert len(read_missions(tmp_path)) == 1
    with monkeypatch.context() as patched:
        patched.setattr(read_record, "_FILE_BYTES", 20)
        assert read_missions(tmp_path) == []
    assert "has more than 20 bytes" in caplog.text
    if os.getuid() == 0:  # whose files are nobody's but root's
        os.chown(path, 1, -1)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    assert read_missions(tmp_path) == []
    assert "agent.m0.jsonl belongs to user" in caplog.text


def test_missions_are_read_from_their_own_files_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("agent.general.jsonl", "other.m1.jsonl"):
        (tmp_path / name).write_bytes(b"damaged\n")
    (tmp_path / "agent.m0.jsonl").write_bytes(line(*GOOD[0]))
    assert [mission.id for mission in read_missions(tmp_path, "agent")] == ["m0"]
    assert caplog.messages == []
    assert [mission.id for mission in read_missions(tmp_path)] == ["m0"]
    (said,) = caplog.messages
    assert "other.m1.jsonl: line 1 is damaged and skipped" in said


@pytest.mark.virtual_time
async def test_a_pipe_in_the_place_of_a_file_holds_up_no_agent(tmp_path: Path) -> None:
    for name in ("agent.general.jsonl", "agent.general.next", "agent.general.old", "agent.m0.jsonl"):
        os.mkfifo(tmp_path / name)
    async with restarted(tmp_path) as agent:
        assert (await agent.over(await agent.say("hi"))).text == "hello"
        agent.core.control.pause("to see it")
        assert agent.core.record.lacks_general
        (tmp_path / "agent.general.jsonl").unlink()
        agent.core.control.resume()
        assert not agent.core.record.lacks_general
        assert [found.event.kind for found in read_lines(tmp_path / "agent.general.jsonl")][-1] == "resume"


@pytest.mark.virtual_time
@pytest.mark.parametrize("begun", [True, False])
async def test_the_successor_of_an_agent_whose_pause_could_not_be_written_begins_paused(
    begun: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with restarted(tmp_path) as agent:
        if begun:
            agent.core.events.emit(EventKind.NOTE, (), text="so that there is a file")
        with monkeypatch.context() as full:
            full.setattr(MissionRecord, "_append", lambda record, mission, line: False)
            agent.core.control.pause("by an operator")
            agent.core.control.resume()
            assert not is_outdated(tmp_path, "agent"), "what is written says the same"
            agent.core.control.pause("by an operator")
            assert is_outdated(tmp_path, "agent")
            await agent.leave()
    async with restarted(tmp_path) as agent:
        assert agent.core.control.paused
        found = read_resumption(tmp_path, "agent")
        assert found is not None
        assert (found.settings.outdated, found.settings.mode) == (False, Mode.PAUSED)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
    max_leaves=10,
)
EVENTS = st.fixed_dictionaries(
    {"kind": st.sampled_from([*KINDS]), "data": st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=8)},
    optional={"missions": st.lists(st.sampled_from(["m0", "m0/1", ""]), max_size=2)},
).map(lambda fields: {"offset": 0, "event": {"number": 50, "utime": 1, "agent": "agent", **fields}})


@pytest.mark.virtual_time
@settings(max_examples=60, deadline=None)
@given(st.lists(JSON | EVENTS, min_size=1, max_size=8))
def test_good_lines_count_among_any_others(odd: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = [line(number, kind, data) for number, kind, data in GOOD]
        others = [json.dumps(each).encode() + b"\n" for each in odd]
        for file in ("agent.m0.jsonl", "agent.general.jsonl"):
            (folder / file).write_bytes(b"".join([*others, *lines, *others]))
        found = [found.event for found in read_lines(folder / "agent.m0.jsonl")]
        assert [event.kind for event in found if event.number <= len(GOOD)] == [kind for _, kind, _ in GOOD]
        assert [mission.id for mission in read_missions(folder)] == ["m0"]
        agent = restarted(folder)
        assert "follow her" in [entry.text for entry in agent.core.conversation.entries]
