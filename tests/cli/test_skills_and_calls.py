"""skills, call, calls, cancel, say and chat against a run in the background."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.cli.bridge_client.run_status.readiness import unready
from dimos_streams.cli.bridge_client.run_status.state import ModuleState, NoBridge, UnreachableBridge
from dimos_streams.cli.bridge_client.run_status.states import with_usage
from dimos_streams.cli.bridge_client.run_status.text import warnings
from dimos_streams.cli.system.machine_checks import EXTRAS, _port
from dimos_streams.operator.messages.stop import GoingOn
from tests.cli.machine import REPOSITORY, ROVER, Machine, read_until
from tests.cli.run_states import BRIDGE, RUN
from tests.runtime.run_records import process_record

pytestmark = pytest.mark.live


def test_skills(rover: Machine) -> None:
    skills = {skill["name"]: skill for skill in rover("skills", "--json").json}
    assert {"say", "move", "wander", "stumble"} <= set(skills)
    assert skills["move"]["available"]
    listed = rover("skills")
    lines = listed.out.splitlines()
    assert listed.err == "`dimos-streams skills NAME` says all of one\n"
    [move] = [number for number, line in enumerate(lines) if line.startswith("  move distance_m [how]  ")]
    assert skills["move"]["module"] in lines[:move]
    [lift] = [line for line in lines if line.startswith("  lift ")]
    assert lift.endswith("  Lift something, and hold it up for ever.")


def test_the_fields_of_the_state_are_in_their_table(rover: Machine) -> None:
    page = (REPOSITORY / "docs/command-line.md").read_text()
    rows = page.partition("| field of `status --json` | |\n|---|---|\n")[2].partition("\n\n")[0].splitlines()
    said: set[str] = set()
    for row in rows:
        names, meaning = (re.findall("`([^`]+)`", cell) for cell in row.strip("|").split(" | "))
        said |= {*names, *(f"{names[0]}.{part}" for part in meaning if len(names) == 1)}
    [state] = rover("status", "--json").json
    shown = set(fields_of(state))
    assert shown <= said
    elsewhere = (
        "machines[]",
        "bridge.problem",
        "bridge.stopped.",
        "bridge.not_ending[]",
        "bridge.hub",
        "bridge.lost",
    )
    named = {name for row in rows for name in re.findall("`([^`]+)`", row.partition(" | ")[0])}
    missing = named - shown - {name.rpartition(".")[0] for name in shown}
    assert [name for name in sorted(missing) if not name.startswith(elsewhere)] == []


def fields_of(value: Any, path: str = "") -> Iterator[str]:
    """The paths to what a JSON value consists of; what modules say of themselves, and leases, are one each."""
    if isinstance(value, dict) and not path.endswith((".state", ".leases")):
        for name, part in value.items():
            yield from fields_of(part, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list):
        for part in value:
            yield from fields_of(part, f"{path}[]")
    else:
        yield path


def test_a_skill_is_described(rover: Machine) -> None:
    assert rover("skills", "lift", "--json").json in rover("skills", "--json").json
    lines = rover("skills", "lift").out.splitlines()
    assert lines[:4] == ["lift", "  Lift something, and hold it up for ever.", "", "  It is not put down."]
    argument = next(line for line in lines if "mass_kg" in line)
    assert re.split(r"\s{2,}", argument.strip()) == ["mass_kg", "number (more than 0)", "1.0", "With its box."]
    assert ["holds", "arm"] in [line.split() for line in lines]
    trip = [line.strip() for line in rover("skills", "trip").out.splitlines()]
    assert {"moves the robot  yes", "approval         ask: an operator is asked if a model calls it"} <= set(trip)
    unknown = rover("skills", "lfit")
    assert (unknown.code, unknown.out) == (2, "")
    near = r"error: no skill is called 'lfit'; did you mean 'lift'\? \(\d+ are offered\)"
    assert re.fullmatch(rf"{near}\n", unknown.err)
    assert re.fullmatch(rf"{near}; `dimos-streams skills` lists them\n", rover("call", "lfit").err)
    assert "(offered: abort, " in rover("call", "no-such").err


def test_a_call_shows_its_stream_and_succeeds(rover: Machine) -> None:
    result = rover("call", "move", "--arg", "distance_m=0.2", "--arg", "how=slow")
    assert (result.code, result.err) == (0, "")
    began, moving, half, done = result.out.splitlines()
    assert 'began (distance_m=0.2, how="slow")' in began
    assert moving.endswith("Moving")
    assert half.endswith("… half of it  (left_m 0.1)")
    assert done.endswith("completed: Moved 0.2 m slow")


def test_a_call_for_scripts(rover: Machine) -> None:
    result = rover("call", "move", "--args-json", '{"distance_m": 0.1}', "--json")
    events = result.json_lines
    assert [event["type"] for event in events] == ["open", "update", "progress", "close"]
    assert events[-1]["data"] == {"outcome": "completed", "result": "Moved 0.1 m fast"}


def test_a_caller_says_what_a_cut_link_means(rover: Machine) -> None:
    """Over the command and the bridge's HTTP, to where every reader of calls sees it."""
    assert rover("call", "move", "--arg", "distance_m=0.1", "--on-loss", "continue").code == 0
    assert rover("call", "move", "--arg", "distance_m=0.1").code == 0
    assert [call["on_loss"] for call in rover("calls", "--json").json[-2:]] == ["continue", "stop"]


def test_a_result_that_is_not_as_declared_is_said(rover: Machine) -> None:
    for more in ([], ["--json"], ["--wait", "answer"]):
        result = rover("call", "mumble", *more)
        assert result.code == 0
        assert result.err.startswith("warning: skill 'mumble' has returned null, declared as str: ")


def test_what_a_skill_does_not_await_is_said_each_time_and_logged_with_its_line(rover: Machine) -> None:
    said = "skill 'mutter' does not await `call.update(\"Never said\")"
    for _ in range(2):
        result = rover("call", "mutter")
        assert result.code == 0
        assert result.err.startswith(f"warning: {said}")
    place = f"({REPOSITORY / 'tests' / 'cli' / 'modules.py'}:"
    logged = [line for line in rover("logs").out.splitlines() if said in line]
    assert len(logged) == 2
    assert all("WARNING dimos_streams.module.rover: " in line and place in line for line in logged)


def test_a_failed_call_fails(rover: Machine) -> None:
    result = rover("call", "stumble")
    assert result.code == 1
    assert result.out.endswith("failed: the wheel is off\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mvoe"], "did you mean 'move'?"),
        (["move"], "distance_m: is missing"),
        (["move", "--arg", "distance_m=far"], "distance_m: it must be a number (given: 'far')"),
        (["move", "--arg", "distance_m"], "NAME=VALUE"),
        (["move", "--args-json", "{"], "not JSON"),
        (["move", "--args-json", "[]"], "not a JSON object"),
        (["move", "--on-loss", "perhaps"], "'stop', 'continue'"),
    ],
)
def test_a_wrong_call_is_one_line(rover: Machine, arguments: list[str], words: str) -> None:
    result = rover("call", *arguments)
    assert result.code in (1, 2)
    assert result.err.count("\n") == 1
    assert words in result.err


def test_time_is_up(rover: Machine) -> None:
    result = rover("call", "wander", "--timeout", "0.3")
    assert result.code == 1
    assert result.out.endswith("cancelled: the caller waited 0.3 s\n")


def test_an_answer_is_enough_and_the_call_goes_on_until_cancelled(rover: Machine) -> None:
    answered = rover("call", "wander", "--wait", "answer", "--arg", "name=12", "--json")
    assert answered.code == 0
    call_id = answered.json_lines[-1]["call_id"]
    assert answered.json_lines[0]["data"]["arguments"] == {"name": "12"}
    assert [call["call_id"] for call in rover("calls", "--open", "--json").json] == [call_id]
    assert call_id in rover("calls").out
    cancelled = rover("cancel", call_id[:6], "--reason", "enough")
    assert (cancelled.code, cancelled.out) == (0, f"wander [{call_id}] cancelled: enough\n")
    assert rover("calls", "--open", "--json").json == []
    assert "no open calls" in rover("calls", "--open").err


def test_ctrl_c_cancels_the_call(rover: Machine) -> None:
    with rover.started_warm("call", "wander") as process:
        read_until(process, "Wandering")
        os.killpg(process.pid, signal.SIGINT)
        rest, _ = process.communicate(timeout=20)
    assert process.returncode == 130
    assert rest.endswith("cancelled: the caller left\n")


def test_one_key_is_one_call_whichever_command_ends_it(rover: Machine) -> None:
    keyed = ("call", "wander", "--idempotency-key", "k1", "--caller", "me", "--json")
    first, second = (rover(*keyed, "--wait", "answer") for _ in range(2))
    assert [result.code for result in (first, second)] == [0, 0]
    (wandering,) = rover("calls", "--open", "--json").json
    assert wandering["caller"] == "me"
    shown = {event["call_id"] for result in (first, second) for event in result.json_lines}
    assert shown == {wandering["call_id"]}
    ended, again = (rover(*keyed, "--timeout", timeout) for timeout in ("0.2", "9"))
    for result in (ended, again):
        assert result.code == 1
        last = result.json_lines[-1]
        assert (last["call_id"], last["text"]) == (wandering["call_id"], "the caller waited 0.2 s")
    conflict = rover("call", "stumble", "--idempotency-key", "k1", "--caller", "me")
    assert (conflict.code, conflict.out, conflict.err.count("\n")) == (2, "", 1)
    first = wandering["call_id"]
    assert f"'k1' is that of call '{first}' of 'wander' (closed: cancelled), which is of another" in conflict.err
    assert conflict.err.endswith(f"; `dimos-streams follow {first}` shows that call\n")
    other = rover("call", "wander", "--idempotency-key", "k1", "--caller", "you", "--timeout", "0.2", "--json")
    assert other.json_lines[0]["call_id"] != wandering["call_id"]


@pytest.mark.parametrize("end", ["timeout", "signal"])
def test_who_follows_a_call_does_not_end_it(rover: Machine, end: str) -> None:
    call_id = rover("call", "wander", "--wait", "answer", "--json").json_lines[0]["call_id"]
    if end == "timeout":
        followed = rover("follow", call_id[:6], "--timeout", "0.3")
        code, out, err = followed.code, followed.out, followed.err
    else:
        with rover.started_warm("follow", call_id[:6], stderr=subprocess.PIPE) as process:
            began = read_until(process, "Wandering")
            os.killpg(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=20)
        code, out = process.wait(20), began + out
    assert (code, f"call {call_id} goes on: `dimos-streams cancel {call_id}` ends it" in err) == (
        1 if end == "timeout" else 130,
        True,
    )
    assert out.splitlines()[0].endswith(f"began ()  [{call_id}]")
    with rover.started_warm("follow", call_id) as process:
        read_until(process, "Wandering")
        assert rover("cancel", call_id, "--reason", "enough").code == 0, "it still ran"
        rest, _ = process.communicate(timeout=20)
    assert (process.returncode, rest.splitlines()[-1].endswith("cancelled: enough")) == (1, True)


def test_a_call_that_is_over_is_shown_with_its_outcome(rover: Machine) -> None:
    shown = rover("call", "move", "--arg", "distance_m=0.1", "--json")
    followed = rover("follow", shown.json_lines[0]["call_id"], "--json", "--wait", "answer")
    assert (shown.code, followed.code) == (0, 0)
    events, again = ([event["text"] for event in result.json_lines] for result in (shown, followed))
    assert events == again
    failed = rover("call", "stumble", "--json").json_lines[0]["call_id"]
    assert rover("follow", failed).code == 1


@pytest.mark.feature("A11")
def test_who_is_refused_for_what_a_call_holds_hears_the_ways_on(rover: Machine) -> None:
    lifting = rover("call", "lift", "--wait", "answer")
    assert lifting.out.splitlines()[1].endswith(
        r'Lifting  (mass_kg=1.0, at=[0.3333, 0.6667], box={"name": "a\u2028b"})'
    )
    (holder,) = rover("calls", "--open", "--json").json
    refused = rover("call", "lift")
    assert (refused.code, refused.out) == (1, "")
    assert f"which 'lift' holds for 'cli' (Lifting): call {holder['call_id']!r}; --lease-wait SECONDS" in refused.err
    assert f"`dimos-streams cancel {holder['call_id']}` ends it" in refused.err
    twice = rover("call", "lift", "--on-duplicate", "reject")
    assert (twice.code, "; --on-duplicate chooses otherwise, `dimos-streams follow " in twice.err) == (1, True)
    assert rover("call", "lift", "--on-duplicate", "replace", "--wait", "answer").code == 0
    assert rover("follow", holder["call_id"]).out.endswith(
        "cancelled: replaced by another call of 'lift' (by 'cli')\n"
    )
    assert rover("cancel", "--all").code == 0


@pytest.mark.feature("A11")
def test_a_call_waits_for_what_another_one_holds_and_not_for_who_has_left(rover: Machine) -> None:
    holder = rover("call", "lift", "--wait", "answer", "--json").json_lines[0]["call_id"]
    with rover.started_warm("call", "lift", "--arg", "mass_kg=2", "--lease-wait", "60") as leaving:
        read_until(leaving, "waiting for it, 60 s at most")
        os.killpg(leaving.pid, signal.SIGINT)
        leaving.communicate(timeout=20)
    assert leaving.returncode == 130
    late = rover("call", "lift", "--lease-wait", "60", "--timeout", "2")
    assert (late.code, "waiting for it, 2 s at most" in late.err) == (1, True), "its time is over by then"
    assert "it was not free within 2 s" in late.err
    with rover.started_warm("call", "lift", "--arg", "mass_kg=3", "--lease-wait", "60") as waiting:
        read_until(waiting, "waiting for it")
        assert rover("cancel", holder).code == 0
        read_until(waiting, "Lifting")
        (lifting,) = rover("calls", "--open", "--json").json
        assert lifting["arguments"] == {"mass_kg": 3.0}
        assert rover("cancel", lifting["call_id"]).code == 0
        waiting.communicate(timeout=20)
    again = rover("cancel", lifting["call_id"])
    assert (again.code, again.err) == (0, f"call {lifting['call_id']} is over already\n")
    assert rover("calls", "--open", "--json").json == [], "who had left wants nothing any more"


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--on-duplicate", "perhaps", "'perhaps' is not one of 'allow', 'reject', 'replace', 'confirm'"),
        ("--lease-wait", "61", "it must be at most 60 (given: '61')"),
        ("--lease-wait", "nan", "(given: 'nan')"),
        ("--idempotency-key", "", "--idempotency-key '': it must have 1 to 200 characters"),
        (
            "--idempotency-key",
            "a\nb",
            r"--idempotency-key 'a\nb': it must have 1 to 200 characters, all of them printable",
        ),
        ("--caller", "mcp", "--caller 'mcp' is the name of an MCP client"),
        ("--caller", "operator.", "--caller 'operator.' looks like 'operator'"),
        ("--caller", "a\nb", r"--caller 'a\nb': valid: 1 to 200 letters of ASCII, digits and ._-/:@+"),
        ("--caller", "agent ", "--caller 'agent ': valid: 1 to 200 letters of ASCII, digits and ._-/:@+"),
        ("--caller", "mcp/me", "--caller 'mcp/me' is the name of an MCP client: valid is a name of your own"),
        ("--caller", "Operator", "--caller 'Operator' looks like 'operator', which is not you: valid is a name of"),
        ("--caller", "Agent", "--caller 'Agent' is the name of an agent: valid is a name of your own"),
        ("--caller", "agent.", "--caller 'agent.' is the name of an agent: valid is a name of your own"),
        ("--caller", "agent", "--caller 'agent' is the name of an agent: valid is a name of your own"),
    ],
)
def test_what_no_call_can_have_is_refused(rover: Machine, option: str, value: str, words: str) -> None:
    result = rover("call", "stumble", option, value)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert words in result.err


def test_an_unknown_call_is_neither_cancelled_nor_followed(rover: Machine) -> None:
    cancel, follow = rover("cancel", "nonsense"), rover("follow", "nonsense")
    assert cancel.code == 2
    assert "'nonsense'" in cancel.err
    assert follow == cancel


def test_say_shows_the_reply(rover: Machine) -> None:
    result = rover("say", "move 0.2 m", "--wait", "close")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0].endswith("move 0.2 m")
    assert any("completed: Moved 0.2 m fast" in line for line in lines)
    assert any(line.split()[1] == "agent" for line in lines)
    assert rover("say", "move 0.1 m", "--agent", "nobody").code == 2


def test_say_for_scripts(rover: Machine) -> None:
    events = rover("say", "move 0.1 m", "--wait", "close", "--json").json_lines
    assert events[-1]["skill"] == "say"
    assert events[-1]["data"]["outcome"] == "completed"
    assert "assistant" in [event["data"].get("entry", {}).get("role") for event in events]


def test_chat_through_a_pipe(rover: Machine) -> None:
    result = rover("chat", stdin="/help\nmove 0.1 m\n/calls\n/nonsense\nmove 0.2 m\n")
    assert (result.code, result.err) == (2, ""), "what was typed wrong, though all else was done"
    assert "/cancel ID" in result.out
    shown, _, _ = result.out.partition("Of an id")
    assert max(map(len, shown.splitlines())) <= 80
    assert "there is no command '/nonsense'" in result.out
    assert result.out.index("Moved 0.1 m") < result.out.index("Moved 0.2 m")


@pytest.mark.parametrize(("hold", "free"), [("/pause", "/resume"), ("/step on", "/step off")])
def test_a_pipe_that_holds_the_agent_reads_on_until_it_goes_on(rover: Machine, hold: str, free: str) -> None:
    result = rover("chat", stdin=f"{hold}\nmove 0.1 m\n{free}\nmove 0.2 m\n")
    assert result.code == (1 if hold == "/pause" else 0), "this robot has no velocity gate that could hold it"
    assert result.out.index("Moved 0.1 m") < result.out.index("Moved 0.2 m")
    left = rover("chat", stdin=f"{hold}\nmove 0.1 m\n")
    assert (left.code, f"what was said last may wait: the agent is held by {hold}" in left.out) == (1, True)
    assert "Moved 0.1 m" in rover("chat", stdin=f"{free}\nmove 0.1 m\n").out


def test_leaving_a_chat(rover: Machine) -> None:
    result = rover("chat", stdin="/quit\nmove 0.1 m\n")
    assert result.code == 0
    assert "move" not in result.out


@pytest.mark.feature("K3")
def test_what_a_blueprint_needs_is_looked_for_on_the_bus(rover: Machine) -> None:
    there = rover("check", "tests.cli.blueprints:lookout", "--live", "--seconds", "1")
    assert (there.code, there.err) == (0, "")
    assert re.search(r"^/position +ok +\d+\.\d Hz +outside +lookout$", there.out, re.MULTILINE)
    missing = rover("check", "tests.cli.blueprints:hopeless", "--live", "--seconds", "1", "--json")
    assert missing.code == 1
    assert {topic["topic"]: topic["state"] for topic in missing.json["live"]["topics"]} == {
        "/where": "missing",
        "/weather": "absent",
    }
    (problem,) = missing.json["problems"]
    assert "/position has that type: remap lookout.position to it" in problem["text"]


def test_topics(rover: Machine) -> None:
    topics = {row["topic"]: row for row in rover("topics", "list", "--seconds", "1", "--json").json}
    assert topics["/position"]["type"] == "std_msgs.String"
    assert topics["/position"]["rate_hz"] == pytest.approx(10, abs=3)
    assert "/position" in rover("topics", "list", "--seconds", "0.5").out
    assert "/position" in rover("topics", "rate", "/position", "--seconds", "1").out


def test_echo(rover: Machine) -> None:
    result = rover("topics", "echo", "/position", "--count", "2", "--json")
    assert result.code == 0
    assert [line["message"] for line in result.json_lines] == [{"data": "here"}] * 2
    named = rover("topics", "echo", "/position#std_msgs.String", "--count", "1")
    assert named.out == "/position#std_msgs.String\n  data: 'here'\n"


def test_status(rover: Machine) -> None:
    (state,) = rover("status", "--json").json
    assert state["blueprint"] == "rover"
    assert state["bridge"]["status"] == "ok"
    assert {process["label"]: process["state"] for process in state["processes"]} == {
        "rover": "ready",
        "bridge": "ready",
        "agent": "ready",
    }
    assert all(module["alive"] and module["health"] == "ok" for module in state["modules"])
    text = rover("status").out
    assert state["run_id"] in text
    assert "rover (ok)" in text
    delivered = r"events  \d+ delivered, 0 lost, 0 malformed"
    assert re.search(delivered + r"; \d+ readers?, \d+ behind, 0 coalesced, 0 cut off", text)
    assert rover("status", "--ready").code == 0


def test_nothing_is_ready_where_nothing_runs(machine: Machine) -> None:
    asked = machine("status", "--ready")
    assert (asked.code, asked.out, asked.err) == (1, "", "error: not ready: no run lives\n")


def test_what_is_not_ready_is_named_with_how_it_stands() -> None:
    alive = {"robot": True, "gate": False, "agent": None}
    modules = tuple(ModuleState(name=name, alive=each) for name, each in alive.items())
    records = (process_record("robot"), replace(process_record("skills"), state="waiting"))
    processes = tuple(with_usage(record) for record in records)
    bridge = replace(BRIDGE, status="degraded")
    run = replace(RUN, bridge=bridge, processes=processes, modules=modules)
    assert unready([run]) == ["process skills waiting", "module gate silent", "module agent unheard"]
    flapping = replace(processes[0], failing="module 'robot' failed: no power")
    assert unready([replace(run, processes=(flapping,), modules=())]) == [
        "process robot keeps failing: module 'robot' failed: no power"
    ]
    late = GoingOn(skill="wave", call_id="c", module="robot", since_utime=0, text="waving")
    busy = replace(bridge, not_ending=(late,), lost=("logs",))
    assert unready([replace(run, bridge=busy, processes=processes[:1], modules=modules[:1])]) == []
    assert [line[:15] for line in warnings(busy.stopped, busy.not_ending)] == ["NOT ending wave"]
    gone = UnreachableBridge(url="http://127.0.0.1:7780", problem="it refuses")
    assert unready([replace(run, bridge=gone)]) == [
        "bridge http://127.0.0.1:7780 unreachable",
        "process skills waiting",
    ]
    alone = replace(run, bridge=NoBridge(), processes=processes[:1], modules=(ModuleState(name="robot"),))
    assert unready([alone]) == []


def test_a_run_without_a_bridge_is_none_that_cannot_be_reached(machine: Machine) -> None:
    started = machine("run", "tests.cli.blueprints:self_starting", "--daemon")
    assert started.code == 0, started
    try:
        (state,) = machine("status", "--json").json
        assert state["bridge"] == {"url": None, "status": "none"}
        assert "\n  bridge  none in this run\n" in machine("status").out
    finally:
        assert machine("stop").code == 0


def test_operators_commands_speak_json(rover: Machine) -> None:
    for command, code in (("pause", 1), ("abort", 1), ("resume", 0)):
        reported = rover(command, "--json")
        assert reported.code == code, "nothing confirms that the robot stands: there is no gate"
        assert set(reported.json) == {"text", "result"}
        assert reported.json["text"]
    assert rover("step", "off", "--json").json["text"]
    assert rover("forget", "--json").json["text"]


def test_what_an_abort_did_is_shown_in_lines(rover: Machine) -> None:
    rover("pause")
    first, second = rover("abort").out.splitlines()
    others = "(those of others are not the agent's to end: `say stop` ends these, too)"
    assert first.startswith(f"aborted: 0 missions, 0 calls {others}; the robot was ")
    assert second == "    the agent stays paused: `resume` ends that"
    assert rover("resume").code == 0


def test_logs(rover: Machine) -> None:
    assert "serving on" in rover("logs", "--process", "bridge").out
    assert "serving on" in rover("logs").out
    served = next(line for line in rover("logs", "--json").json_lines if "serving on" in line["text"])
    assert (served["process"], served["level"]) == ("bridge", "INFO")
    assert isinstance(served["utime"], int)
    wrong = rover("logs", "--process", "brigde")
    assert wrong.code == 2
    assert "did you mean 'bridge'?" in wrong.err


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_who_waits_for_a_decision_is_told_on_standard_error_how_to_decide(machine: Machine, form: list[str]) -> None:
    ask = "agent.approval.rules=[{skill: move}]"
    assert machine("run", ROVER, "--daemon", "--port", str(machine.port), "--set", ask).code == 0
    with machine.started_warm("say", "move 1", *form, stderr=subprocess.PIPE) as saying:
        assert saying.stderr is not None
        hint = saying.stderr.readline() + saying.stderr.readline()
        command = re.search(r"`dimos-streams (approve \S+)`", hint)
        assert command is not None, hint
        busy = machine("say", "--timeout", "0.5", "stumble")
        assert f"`dimos-streams {command[1]}`" in busy.err
        decided = machine("reject", command[1].split()[1], "--reason", "not now")
        assert decided.code == 0
        out, err = saying.communicate(timeout=20)
    assert (saying.returncode, err) == (1, "")
    assert form or out.count("not now. Do not repeat it") == 2, "as it came, and as the reason at the end"
    assert machine("stop").code == 0


def test_doctor(rover: Machine) -> None:
    result = rover("doctor", "--port", str(rover.port), "--json")
    assert result.json["usable"] is (result.code == 0)
    findings = {finding["name"]: finding for finding in result.json["findings"]}
    assert findings["bus"]["severity"] != "error"
    assert "serves the run" in findings["bridge port"]["text"]
    assert {package for package, _, _ in EXTRAS} <= findings.keys()
    text = rover("doctor", DIMOS_STREAMS__BRIDGE__PORT=str(rover.port))
    assert "serves the run" in text.out, "which is looked at as runs are told it, too"
    assert text.out.rstrip().endswith("usable")


def test_doctor_says_of_no_port_in_particular_that_any_free_one_is_taken() -> None:
    assert _port(0, ()).text == "any that is free is taken (0)"


def test_doctor_knows_all_extras_that_users_install() -> None:
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {extra for _, extra, _ in EXTRAS} == extras.keys() - {"demo", "quick", "test", "docs", "dev"}


def test_doctor_leaves_nothing_in_the_recording_of_the_run_beside_it(machine: Machine, tmp_path: Path) -> None:
    log = tmp_path / "a.lcmlog"
    started = machine("run", ROVER, "--daemon", "--port", str(machine.port), "--record", str(log))
    assert started.code == 0, started
    doctor = machine("doctor", "--json")
    assert machine("stop").code == 0
    sent = next(finding["text"] for finding in doctor.json["findings"] if finding["name"] == "bus")
    assert " of 50 messages of 60 kB came back" in sent
    recorded = machine("recording", "info", str(log), "--json").json["channels"]
    assert not [channel for channel in recorded if "doctor" in str(channel)]
    assert any("module_status" in str(channel) for channel in recorded)


@pytest.mark.feature("E9")
def test_a_bug_names_its_type_and_the_command_that_shows_it(rover: Machine) -> None:
    failed = rover("call", "trip")
    assert failed.code == 1
    said = re.search(r"internal error \S+ \(ZeroDivisionError\): `(.*) \| grep -F -A 40 (\S+)` shows it", failed.out)
    assert said is not None, failed
    assert "no wheels" not in failed.out
    run = rover("status", "--json").json[0]["run_id"]
    assert said[1].split() == ["dimos-streams", "logs", run]
    logs = rover(*said[1].split()[1:]).out
    place = logs.index(said[2])
    assert "Traceback" in logs[place:]
    assert "ZeroDivisionError: no wheels" in logs[place:]
