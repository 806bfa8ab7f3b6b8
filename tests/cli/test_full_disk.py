"""A robot's run outlives its disk: a real file system that is full, under the real command and its processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from dimos_streams.bus import create_bus
from dimos_streams.messages.codec import channel_name, decode
from dimos_streams.messages.geometry_msgs import Twist
from tests.cli.machine import Machine
from tests.helpers import fill

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]
SMALL = ("--set", "robot.camera_width=160", "--set", "robot.camera_height=120")


def until(condition: Callable[[], Any], timeout_s: float = 30.0) -> Any:
    """The condition's value as soon as there is one."""
    for _ in range(int(timeout_s / 0.1)):
        with contextlib.suppress(requests.RequestException):
            if found := condition():
                return found
        threading.Event().wait(0.1)
    raise AssertionError("it has not come true")


@pytest.mark.feature("F5")
def test_a_run_outlives_its_disk_and_the_death_of_each_process(small_disk: Path) -> None:
    machine = Machine(state=small_disk / "state")
    url = f"http://127.0.0.1:{machine.port}"
    record = str(small_disk / "walk.lcmlog")

    def get(path: str) -> Any:
        return requests.get(url + path, timeout=10).json()

    def modules() -> dict[str, int]:
        """The living ones, with the processes that they are in."""
        return {module["name"]: module["pid"] for module in get("/modules") if module["alive"]}

    def call(skill: str, **arguments: object) -> Any:
        body = {"skill": skill, "arguments": arguments}
        return requests.post(f"{url}/calls?wait=close", json=body, timeout=40).json()

    port = ("--port", str(machine.port))
    started = machine("run", "follow-person", "--daemon", *port, *SMALL, "--record", record)
    assert started.code == 0, started.err
    try:
        say = {"skill": "say", "arguments": {"text": "follow the person in the red shirt"}}
        requests.post(f"{url}/calls", json=say, timeout=10)
        follow = until(lambda: [each for each in get("/calls?state=open") if each["skill"] == "follow_person"])[0]
        until(lambda: get(f"/calls/{follow['call_id']}")["answer"])
        before = modules()
        next(small_disk.glob("state/runs/*/logs/skills.log")).unlink()  # one that can't even be opened again
        ballast = fill(small_disk)
        until(lambda: "memory" in get("/healthz")["journal"]["state"])
        for pid in dict.fromkeys(before.values()):
            os.kill(pid, signal.SIGKILL)
            fill(small_disk)  # the room of what only the dead had open
            until(lambda: (now := modules()).keys() == before.keys() and pid not in now.values())  # noqa: B023
            until(lambda: "memory" in get("/healthz")["journal"]["state"])
            until(lambda: call("observe").get("outcome") == "completed")
        health = until(lambda: (now := get("/healthz"))["disk"] != "ok" and "recorder" in now["unwell"] and now)
        assert (health["status"], health["disk"]) == ("degraded", "No space left on device")
        *lost, doubt = health["lost"][1:]
        assert lost == ["logs", "mission records", "pictures"]
        assert doubt.startswith("perhaps stops from before the bridge began: nothing could be written then")
        assert "No space left on device" in health["unwell"]["recorder"]
        (run,) = machine("status", "--json").json
        assert {process["state"] for process in run["processes"]} == {"ready"}
        assert {process["pid"] for process in run["processes"]} == set(modules().values())
        shown = machine("status").out
        assert "No space left on device: logs, mission records and pictures are lost" in shown
        assert "the journal is in memory" in shown
        for skill, arguments in (("observe", {}), ("move", {"distance_m": 0.1}), ("say", {"text": "move 0.1 m"})):
            until(lambda: call(skill, **arguments).get("outcome") == "completed")  # noqa: B023

        paused = machine("pause")
        assert (paused.code, "NOT KEPT: the record in" in paused.out) == (1, True), paused
        assert machine("resume").code == 0, "who starts again is not paused either"
        stepping = machine("step", "on")
        assert (stepping.code, "step mode is on; NOT KEPT: the record in" in stepping.out) == (1, True), stepping
        assert machine("step", "off").code == 0
        forgotten = machine("forget", "--json")
        assert (forgotten.code, "NOT KEPT" in forgotten.json["text"]) == (1, True), forgotten
        assert "the record in" in forgotten.json["result"]["unkept"]
        forbidden = machine("call", "set_skill", "--arg", "skill=observe", "--arg", "enabled=false")
        assert (forbidden.code, "observe is disabled; NOT KEPT" in forbidden.out) == (1, True), forbidden

        ballast.unlink()
        until(lambda: "messages are missing" in get("/healthz")["unwell"].get("recorder", ""))
        until(lambda: get("/healthz")["disk"] == "ok" and get("/healthz")["journal"]["state"] == "ok")
        assert "the journal is in memory" not in machine("status").out
        until(lambda: call("move", distance_m=-0.1).get("outcome") == "completed")
        until(
            lambda: any("bytes are missing" in log.read_text() for log in small_disk.glob("state/runs/*/logs/*.log"))
        )
    finally:
        assert machine("stop").code == 0
    assert machine.leaves_nothing()
    info = machine("recording", "info", record)
    assert info.code == 0, info.err


@pytest.mark.feature("F5")
def test_a_supervisor_that_is_killed_on_a_full_disk_leaves_a_robot_that_stands(small_disk: Path) -> None:
    machine = Machine(state=small_disk / "state")
    url = f"http://127.0.0.1:{machine.port}"
    start = ("run", "follow-person", "--daemon", "--port", str(machine.port), *SMALL)
    begun = machine(*start)
    assert begun.code == 0, begun.err
    (run,) = machine("status", "--json").json
    fill(small_disk)
    until(lambda: "disk" in requests.get(f"{url}/healthz", timeout=10).json()["unwell"].get("bridge", ""))
    with commanded(machine.bus) as speeds:
        move = {"skill": "turn", "arguments": {"angle_deg": 1080}}
        until(lambda: requests.post(f"{url}/calls", json=move, timeout=10).ok)
        until(lambda: speeds and speeds[-1] > 0.1)
        os.kill(run["pid"], signal.SIGKILL)
        assert machine.leaves_nothing()
        until(lambda: speeds[-1] == 0.0)
    assert machine("status", "--json").json == []
    fill(small_disk)  # the room of what only the dead had open
    refused = machine(*start)
    assert refused.code == 2
    assert refused.err.strip().count("\n") == 0
    assert "No space left on device; DIMOS_STREAMS_STATE_DIR can name another" in refused.err
    assert machine.leaves_nothing()


@contextlib.contextmanager
def commanded(bus_url: str) -> Iterator[list[float]]:
    """The speeds that the velocity gate commands from now on, in rad/s, as they come."""
    speeds: list[float] = []
    done = threading.Event()

    async def listen() -> None:
        bus = create_bus(bus_url)
        await bus.open()
        channel = channel_name("/cmd_vel", Twist)
        bus.subscribe(channel, lambda _, data: speeds.append(abs(decode(Twist, data).angular.z)))
        await asyncio.to_thread(done.wait)
        await bus.close()

    listening = threading.Thread(target=lambda: asyncio.run(listen()))
    listening.start()
    try:
        yield speeds
    finally:
        done.set()
        listening.join()


@pytest.mark.parametrize("room", [0, 4096], ids=["none", "one page"])
@pytest.mark.parametrize("mode", [(), ("--daemon",), ("--in-process",)], ids=["live", "daemon", "in-process"])
def test_a_start_without_room_is_one_line(small_disk: Path, mode: tuple[str, ...], room: int) -> None:
    machine = Machine(state=small_disk / "state")
    ballast = fill(small_disk)
    os.truncate(ballast, ballast.stat().st_size - room)
    refused = machine("run", "robot-only", "--port", str(machine.port), *mode)
    assert refused.code == 2
    assert refused.err.strip().count("\n") == 0
    assert "No space left on device; DIMOS_STREAMS_STATE_DIR can name another" in refused.err
    assert machine.leaves_nothing()
