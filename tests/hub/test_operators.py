"""Operators' commands at a hub: each robot's name stands before those of its skills, agents and modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from dimos_streams.cli.entry import run_command
from dimos_streams.fleet.batches import encoded_event
from tests.cli.machine import Machine, Result
from tests.helpers import wait_for
from tests.hub.answering_robot import answering
from tests.hub.serving import Robot, added, event, served_hub
from tests.ports import free_port

pytestmark = pytest.mark.slow

Command = Callable[..., Result]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """Commands at a hub with two robots: ``robot1`` with an agent, ``robot2`` without one."""
    place = tmp_path_factory.mktemp("fleet")
    machine, url = Machine(place / "state"), f"http://127.0.0.1:{free_port()}"
    database = f"sqlite:///{place}/hub.sqlite"
    tokens = added(database, "robot1", "robot2")
    with machine.started("hub", "--port", url.rpartition(":")[2], "--database", database) as process:
        wait_for(lambda: is_served(f"{url}/healthz"))
        for robot, token in tokens.items():
            start(machine, place, robot, token, url)
        wait_for(lambda: {"robot1_say", "robot2_turn"} <= skills_at(url))
        yield lambda *words, **more: machine(*words, "--url", url, **more)
        for _ in tokens:
            assert machine("stop").code == 0
        process.terminate()
        process.wait(20)
    assert machine.leaves_nothing()


def is_served(url: str) -> bool:
    try:
        return requests.get(url, timeout=20).ok
    except requests.ConnectionError:
        return False


def skills_at(url: str) -> set[str]:
    return {skill["name"] for skill in requests.get(f"{url}/skills", timeout=20).json()}


def start(machine: Machine, place: Path, robot: str, token: str, url: str) -> None:
    agent = "  agent: {type: dimos_streams.agent.module:Agent}\n" if robot == "robot1" else ""
    blueprint = place / f"{robot}.yaml"
    blueprint.write_text(
        f"name: {robot}\ninclude: [robot-only]\nmodules:\n"
        f"  bridge: {{type: dimos_streams.bridge.module:Bridge}}\n{agent}"
    )
    (place / f"{robot}.token").write_text(token)
    settings = ["bridge.port=0", f"bridge.hub.robot={robot}", f"bridge.hub.token_file={place}/{robot}.token"]
    if agent:
        settings.append("agent.approval={rules: [{skill: go_to}]}")
    started = machine(
        "run", str(blueprint), "--in-process", "--bus", "memq://", "--daemon", "--hub", url,
        *(word for setting in settings for word in ("--set", setting)),
    )  # fmt: skip
    assert started.code == 0, started


def said(result: Result) -> tuple[int, str]:
    return result.code, result.err.strip()


@pytest.mark.feature("H2")
@pytest.mark.parametrize(
    "words",
    [
        ["move 0.05"],
        ["robot1: move 0.05"],
        ["move 0.05", "--agent", "robot1"],
        ["move 0.05", "--agent", "robot1_say"],
    ],
)
def test_what_is_said_goes_to_the_robot_s_agent(hub: Command, words: list[str]) -> None:
    result = hub("say", *words, "--wait", "close")
    assert said(result) == (0, "")
    assert "move: Moved 0.0" in result.out


def test_agents_are_held_asked_and_undone_by_their_robot_s_name(hub: Command) -> None:
    assert hub("pause", "--agent", "robot1").code == 0
    assert said(hub("resume")) == (0, "")
    assert said(hub("say", "robot2: move 0.2")) == (2, "error: no agent is called 'robot2' (there are: robot1/agent)")
    assert hub("say", "move 0.1", "--wait", "close").code == 0
    assert "undone: Went back" in hub("undo", "--agent", "robot1").out


def test_approvals_at_a_hub_are_those_of_its_robots_and_calls_leaves_looks_out(hub: Command) -> None:
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(hub, "say", "go to -2 -1")
        wait_for(lambda: hub("approvals", "--json").json)
        (waits,) = hub("approvals", "--json").json
        assert (waits["agent"], waits["skill"]) == ("robot1/agent", "robot1_go_to")
        assert said(hub("reject", waits["id"], "--reason", "no")) == (0, "")
        assert answer.result().code == 1
    assert hub("approvals", "--json").json == []
    wait_for(lambda: "approvals" in hub("calls", "--all").out)
    shown = hub("calls").out
    assert shown.split()[:3] == ["ROBOT", "CALL", "SKILL"]
    skills = {line.split()[2] for line in shown.splitlines()}
    assert {"say", "decide"} <= skills
    assert "approvals" not in skills


def test_a_chat_at_a_hub(hub: Command) -> None:
    result = hub("chat", stdin="robot1: move 0.05\n/pause\n/resume\n")
    assert said(result) == (0, "")
    assert "move: Moved 0.0" in result.out
    assert "goes on" in result.out


def test_what_could_be_meant_for_several_robots_is_asked_for_by_what_can_be_typed(hub: Command) -> None:
    error = "error: several robots have a skill 'turn'; call robot1_turn or robot2_turn, or give --robot"
    assert said(hub("call", "turn", "--arg", "angle_deg=5")) == (2, error)
    assert hub("call", "robot2_turn", "--arg", "angle_deg=5").code == 0
    done = hub("call", "turn", "--robot", "robot2", "--arg", "angle_deg=5", "--json").json_lines
    assert {event["robot"] for event in done} == {"robot2"}


def test_of_calls_with_one_id_that_of_a_robot_is_cancelled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    one, two = (Robot(name, token) for name, token in added(database, "r1", "r2").items())
    with served_hub(database) as hub, ThreadPoolExecutor(1) as pool:
        for robot in (one, two):
            robot.ship(hub, encoded_event(1, event(1, type="open")))
        with answering(hub, one) as (first,):
            assert run_command(["cancel", "c", "--url", hub.url]) == 2
            assert "begin with 'c': c1 of r1, c1 of r2; --robot says whose" in capsys.readouterr().err
            assert run_command(["cancel", "c1", "--robot", "r3", "--url", hub.url]) == 2
            assert "no call of robot 'r3' has an id that begins with 'c1'" in capsys.readouterr().err
            asked = pool.submit(run_command, ["cancel", "c", "--robot", "r1", "--url", hub.url])
            assert first.took.acquire(timeout=20)
            one.ship(hub, encoded_event(2, event(2, "enough", type="close", outcome="cancelled")))
            assert asked.result() == 0
            two.ship(hub, encoded_event(2, event(2, "it is over", type="close", outcome="completed")))
            assert capsys.readouterr().out == "s [c1] cancelled: enough\n"
        assert [command["path"] for command in first.taken] == ["/calls/c1/cancel"]
    first.join()


def test_a_hub_has_no_monitor(hub: Command) -> None:
    code, error = said(hub("monitor"))
    assert (code, "is a fleet's hub, which has no monitor: watch a robot at its own bridge" in error) == (2, True)


def test_settings_of_a_robot_change_through_its_hub(hub: Command) -> None:
    done = hub("set", "robot1/follow.distance_m=0.9")
    assert (done.code, done.out) == (0, "robot1/follow.distance_m: 1.8 → 0.9\n")
    for words, error in [
        (
            ["follow.distance_m=1"],
            "'follow.distance_m=1' names no robot, which a hub has to know: say 'ROBOT/M",
        ),
        (["robot1/follow.distance_m=abc"], "robot1/follow.distance_m: it must be a number (given: 'abc')"),
        (
            ["robot1/follow.distance_m=1", "robot2/follow.distance_m=1"],
            "a time, and these are of robot1, r",
        ),
        (["robot3/follow.distance_m=1"], "no robot of this fleet is called 'robot3'"),
    ]:
        result = hub("set", *words)
        assert (result.code, error in result.err) == (2, True), result
