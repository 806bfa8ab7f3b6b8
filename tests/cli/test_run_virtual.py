"""run --virtual-time: what it refuses, whom it talks to, and what it says of a mission that never ends."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dimos_streams.blueprint.load import resolve
from dimos_streams.cli.entry import run_command
from dimos_streams.cli.option_groups.run_request import RunRequest
from dimos_streams.cli.running.run_plan import RunPlan
from dimos_streams.errors import UserError
from tests.cli.machine import ROVER, Machine


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([ROVER, "--duration", "1", "--in-process"], "--virtual-time is in one process anyway"),
        ([ROVER], "virtual time never waits, so it needs an end"),
        ([ROVER, "--duration", "1", "--daemon"], "--virtual-time has no use for --daemon"),
        ([ROVER, "--duration", "1", "--bus", "memq://"], "--virtual-time has no use for --bus"),
        (["agent-openai", "--duration", "1"], "agent.model=openai:gpt-4.1-mini asks a server"),
        (["robot-only", "--duration", "1", "--port", "7799"], "no bridge that could serve on --port 7799"),
        (["two-robots", "--duration", "1", "--say", "stop"], "(agents: robot1, robot2)"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["run", "--virtual-time", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_no_vision_model_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    asking = "tests.cli.blueprints:asking_a_vision_model"
    assert run_command(["run", asking, "--virtual-time", "--duration", "1"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "error: the detector backend 'vlm' asks a server, which keeps no virtual time: set another one"


def test_texts_go_to_the_agent_that_they_begin_with() -> None:
    def plan(reference: str) -> RunPlan:
        request = RunRequest(reference=reference, virtual_time=True)
        return RunPlan(request=request, blueprint=resolve(reference))

    two = plan("two-robots")
    assert two.listener("robot1: follow the person in red") == "robot1_say"
    assert two.listener(" robot2 : stop") == "robot2_say"
    with pytest.raises(UserError, match="does not begin with the name of an agent"):
        two.listener("robot3: stop")
    one = plan("follow-person")
    assert one.listener("robot1: follow the person in red") == "say"
    assert plan("robot-only").listener("stop") is None


def test_several_agents_get_several_inputs(machine: Machine) -> None:
    result = machine(
        *("run", "tests.cli.blueprints:two_rovers", "--virtual-time", "--exit-when-done"),
        *("--say", "one: move 4 m", "--say", "two: move 8 m"),
    )
    assert (result.code, result.err) == (0, "")
    assert re.search(r"2\.\d\d  one_move +completed: Moved 4 m", result.out)
    assert re.search(r"4\.\d\d  two_move +completed: Moved 8 m", result.out)
    assert "one/agent" in result.out
    assert result.out.endswith("2 calls: 2 completed\n")


def test_a_mission_that_never_ends_is_an_error_that_names_who_waits(machine: Machine) -> None:
    result = machine("run", ROVER, "--virtual-time", "--say", "move 100000 m", "--exit-when-done")
    assert result.code == 1
    assert "no call has said anything for 600 s of virtual time" in result.err
    waiting = r"move:\w+: await asyncio\.sleep\(distance_m / self\.config\.speed_m_s\)  \(.*in Rover\.move\)"
    assert re.search(waiting, result.err)
    assert "Traceback" not in result.err


DEAF = """
modules:
  deaf: {type: tests.runtime.modules:DeafAtWork}
  bridge: {type: dimos_streams.bridge.module:Bridge}
  agent: {type: dimos_streams.agent.module:Agent}
"""


@pytest.mark.parametrize("mode", ["--virtual-time", pytest.param("--in-process", marks=pytest.mark.slow)])
def test_a_skill_that_swallows_its_cancellation_is_named_and_the_run_ends(
    machine: Machine, tmp_path: Path, mode: str
) -> None:
    (tmp_path / "deaf.yaml").write_text(DEAF)
    port = () if mode == "--virtual-time" else ("--port", str(machine.port))
    result = machine("run", str(tmp_path / "deaf.yaml"), mode, *port, "--say", "patrol", "--duration", "1")
    assert (result.code, "1 call: 1 open" in result.out) == (1, True)
    assert "error: still at work" in result.err
    assert re.search(r"\nerror:   patrol:\w+: await asyncio\.sleep\(0\.5\)", result.err)
