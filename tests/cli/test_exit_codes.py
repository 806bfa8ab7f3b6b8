"""Exit codes: what did not complete is no success, whichever command asked for it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.cli.exit_codes import MEANINGS, code_of, code_of_error
from dimos_streams.client.problems import problem_error
from dimos_streams.testing.model_reply import Reply
from dimos_streams.testing.model_server import ModelServer, RecordedRequest
from dimos_streams.tool_stream.event import ToolEvent
from tests.cli.machine import REPOSITORY, ROVER, Machine

KEY = "key-of-a-test"
DOC = REPOSITORY / "docs" / "command-line.md"
BAD_KEY = Reply.error(401, "Incorrect API key provided")
REPLIES = {
    "use the bad key": BAD_KEY,
    "say it at length": Reply.raw(
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "I would"}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]},
    ),
    "break off there": Reply.say("I would drive").but(cut_after=2),
    "all is fine": Reply.say("Done."),
}


@pytest.mark.parametrize("problem", ["unknown-skill", "unknown-agent", "unknown-robot", "unknown-call"])
def test_what_a_bridge_does_not_know_was_typed_wrong(problem: str) -> None:
    error = problem_error({"type": f"urn:dimos-streams:{problem}", "detail": "there is none"})
    assert code_of_error(error) == 2


def answer(request: RecordedRequest) -> Reply:
    """The reply that the newest input of the operator asks for."""
    input = [str(message["content"]) for message in request.body["messages"] if message["role"] == "user"][-1]
    return next(reply for said, reply in REPLIES.items() if said in input)


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(answer).in_thread() as server:
        yield server


def asking(model: ModelServer) -> list[str]:
    """Settings with which the agent asks the server."""
    values = {"model": "openai:m", "base_url": model.url, "model_options.attempts": 1}
    return [part for name, value in values.items() for part in ("--set", f"agent.{name}={value}")]


@pytest.fixture(scope="module")
def talking(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[Machine]:
    """A machine whose rover asks the server."""
    machine = Machine(tmp_path_factory.mktemp("state"))
    started = machine("run", ROVER, "--daemon", "--port", str(machine.port), *asking(model), OPENAI_API_KEY=KEY)
    assert started.code == 0, started
    yield machine
    stopped = machine("stop", "--json")
    assert (stopped.code, stopped.json["stopped"]) == (0, True)


def test_the_documented_codes_are_those_of_the_help() -> None:
    rows = re.findall(r"^\| ([\d+N]+) \| (.*) \|$", DOC.read_text(), re.MULTILINE)
    assert dict(rows) == MEANINGS


@pytest.mark.feature("B9")
@pytest.mark.live
@pytest.mark.parametrize(
    ("input", "reason", "why"),
    [
        ("use the bad key", "error", "401: Incorrect API key provided"),
        ("say it at length", "length", "longer than"),
        ("break off there", "cut", ""),
    ],
)
def test_say_fails_with_the_reason(talking: Machine, input: str, reason: str, why: str) -> None:
    said = talking("say", input, "--wait", "close")
    assert said.code == 1
    assert re.search(rf"failed: the mission did not complete: {reason} \(.*{why}", said.out.splitlines()[-1])
    assert talking("say", input).code == 1
    last = talking("say", input, "--wait", "close", "--json").json_lines[-1]
    assert (last["data"]["outcome"], last["data"]["result"]["reason"]) == ("failed", reason)


@pytest.mark.live
def test_a_pipe_fails_if_anything_that_was_said_did(talking: Machine) -> None:
    assert talking("chat", stdin="all is fine\n").code == 0
    assert talking("chat", stdin="use the bad key\nall is fine\n").code == 1
    assert talking("chat", stdin="/calls\nall is fine\n").code == 0
    for line in ("/approve nonsense", "/nosuch", "/cancel nope", "/undo all", "/now"):
        assert talking("chat", stdin=f"{line}\nall is fine\n").code == 2


@pytest.mark.live
def test_what_was_typed_wrong_is_2_in_each_command(talking: Machine) -> None:
    for wrong in (
        ["cancel", "nope"],
        ["approve", "nope"],
        ["missions", "nope"],
        ["logs", "nope"],
        ["stop", "nope"],
        ["undo", "0"],
        ["call", "nope"],
        ["call", ""],
        ["call", "move", "-a", "distance_m=far"],
        ["call", "move", "-a", "distance_m=.nan"],
        ["call", "move", "-a", "distance_m=1e400"],
        ["say", "  "],
    ):
        result = talking(*wrong)
        assert (result.code, result.out) == (2, ""), (wrong, result)


GATE = {"gate": "gate", "problem": "silent", "text": "it says nothing"}
ABORTED = {"reason": "enough", "missions": [], "cancelled": [], "unfinished": []}


@pytest.mark.feature("B10", "F5")
@pytest.mark.parametrize(
    ("skill", "result", "code"),
    [
        ("set_skill", "look is disabled", 0),
        ("set_skill", {"text": "look is disabled", "unkept": "the disk is full"}, 1),
        ("r1_set_model", {"text": "asks offline", "unkept": "the disk is full"}, 1),
        ("pause", {"changed": True, "held": ["gate"], "not_held": []}, 0),
        ("abort", {**ABORTED, "held": ["gate"], "not_held": []}, 0),
        ("abort", {**ABORTED, "held": ["gate"], "not_held": [GATE]}, 1),
        ("abort", {**ABORTED, "held": ["gate"], "not_held": [], "unkept": "the disk is full"}, 1),
        ("pause", {"changed": True, "held": [], "not_held": []}, 1),
        ("undo", {"asked": 1, "found": 1, "undone": [{"call_id": "c0", "how": "undone"}]}, 0),
        ("undo", {"asked": 1, "found": 1, "undone": [{"call_id": "c0", "how": "impossible"}]}, 1),
        ("undo", True, 0),
        ("undo", {"of": "one's own"}, 0),
        ("undo", {"undone": True}, 0),
        ("undo", {"undone": ["the lid"]}, 0),
        ("pause", {"held": True}, 0),
        ("pause", {"held": []}, 0),
        ("pause", {"held": "box", "changed": 3}, 0),
        ("abort", {"held": "box"}, 0),
        ("resume", {"unkept": 1}, 0),
        ("pause", None, 0),
        ("look", {"unkept": "a photo"}, 0),
    ],
)
def test_an_order_that_is_called_as_a_skill_counts_as_its_command_does(skill: str, result: Any, code: int) -> None:
    module = "r1/agent" if skill.startswith("r1_") else "agent"
    fields = {"utime": 1, "call_id": "c1", "seq": 2, "type": "close", "caller": "cli", "text": ""}
    closed = {**fields, "module": module, "skill": skill, "data": {"outcome": "completed", "result": result}}
    assert code_of(ToolEvent.from_dict(closed)) == code


@pytest.mark.live
def test_a_pause_that_nothing_confirms_is_1_whichever_way_it_is_given(talking: Machine) -> None:
    for way in (["pause"], ["call", "pause"]):
        paused = talking(*way)
        assert (paused.code, "NOT held: no velocity gate was heard" in paused.out) == (1, True), paused
    assert talking("call", "resume").code == 0


@pytest.mark.live
def test_a_model_that_cant_be_made_is_named_with_what_is_valid(talking: Machine) -> None:
    refused = talking("call", "set_model", "-a", "model=scipted:x.yaml")
    assert refused.code == 1
    wrong = (
        "there is no model 'scipted:x.yaml'; did you mean 'scripted:x.yaml'? (valid: 'offline', 'scripted:FILE', 'op"
    )
    assert wrong in refused.out, refused


@pytest.mark.live
def test_calls_are_taken_back_from_the_command_line(talking: Machine) -> None:
    nothing = talking("undo")
    assert (nothing.code, nothing.out) == (0, "there is nothing of the agent's to take back\n")


@pytest.mark.live
@pytest.mark.parametrize(
    "more", [["--exit-when-done"], ["--exit-when-done", "--duration", "30"], ["--duration", "2"]]
)
def test_a_job_with_a_bad_key_fails(machine: Machine, model: ModelServer, more: list[str]) -> None:
    run = ["run", ROVER, "--in-process", "--port", str(machine.port), *asking(model), "--json"]
    result = machine(*run, "--say", "use the bad key", *more, OPENAI_API_KEY=KEY)
    assert (result.code, result.err) == (1, "")
    (mission,) = result.json_lines[-1]["missions"]
    assert (mission["input"], mission["outcome"], mission["reason"]) == ("use the bad key", "failed", "error")
    assert "Incorrect API key provided" in mission["text"]


@pytest.mark.live
def test_a_run_in_which_a_module_keeps_failing_fails(machine: Machine) -> None:
    result = machine("run", "tests.cli.blueprints:unplugged", "--duration", "1.5")
    assert result.code == 1
    assert (
        "process 'camera' keeps failing or is down: module 'camera' failed: ConnectionError: the camera" in result.out
    )
    assert "'rover' keeps" not in result.out


def test_in_virtual_time_and_recorded(machine: Machine, tmp_path: Path) -> None:
    script, log = tmp_path / "script.yaml", tmp_path / "walk.lcmlog"
    script.write_text(json.dumps({"turns": [{"text": "I would", "finish": "length"}]}))
    run = ["run", ROVER, "--virtual-time", "--set", f"agent.model=scripted:{script}", "--say", "go", "--json"]
    for more in (["--exit-when-done", "--record", str(log)], ["--duration", "5"]):
        result = machine(*run, *more)
        assert (result.code, result.json_lines[-1]["missions"][0]["reason"]) == (1, "length")
    assert machine("recording", "info", str(log)).code == 0


def test_the_worst_of_several_counts(machine: Machine) -> None:
    run = ["run", "tests.cli.blueprints:two_rovers", "--virtual-time", "--exit-when-done", "--json"]
    bounds = ["--set", "two/agent.limits.deadline_s=1"]
    result = machine(*run, *bounds, "--say", "one: move 4 m", "--say", "two: move 8 m")
    assert result.code == 1
    missions = result.json_lines[-1]["missions"]
    assert [mission["reason"] for mission in missions] == ["completed", "deadline"]


def test_a_mission_that_the_duration_ends_is_no_failure(machine: Machine) -> None:
    result = machine("run", ROVER, "--virtual-time", "--duration", "5", "--say", "move 1000 m", "--json")
    assert result.code == 0
    assert result.json_lines[-1]["missions"][0]["outcome"] in (None, "cancelled")
