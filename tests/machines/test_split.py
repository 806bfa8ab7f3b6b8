"""One blueprint on two machines: a mission to its end, and the network between them cut at random.

``DIMOS_STREAMS_CUTS=20`` cuts it in twenty missions on each bus, from seed ``DIMOS_STREAMS_FIRST_CUT`` on; without it
there is one over LCM, and a mission without cuts over Zenoh.
"""

from __future__ import annotations

import json
import math
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import wait_for
from tests.machines.split_run import Split, documented, routed, split_run, started, zenoh_bus
from tests.namespaces import CUTS, Cut, Link, linked

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.feature("H1")]

SEEDS = int(os.environ.get("DIMOS_STREAMS_CUTS", "0"))
FIRST = int(os.environ.get("DIMOS_STREAMS_FIRST_CUT", "0" if SEEDS else "1"))
RUN_THERE = "drive"
"""The module on the robot's machine whose skills are called."""
STANDS_WITHIN_S = 3.0
"""Of a cut: a call that moves ends when nobody has acknowledged it for 2 s, and then the robot brakes."""
SHORTEST_S, LONGEST_S = 0.2, 20.0
ONLY_S = 5.0
"""The length of cuts where there is one mission: long enough to see that the robot stands."""
LCM = "udpm://239.255.76.67:7667?ttl=1"


@pytest.fixture
def link() -> Iterator[Link]:
    """Two machines that reach each other by multicast; the test is on one of them."""
    with linked() as link, link.here.entered():
        routed(link)
        yield link


def buses_of(name: str, link: Link, *, sweep_only: str) -> tuple[str, str]:
    if name == sweep_only and not SEEDS:
        pytest.skip("DIMOS_STREAMS_CUTS=20 runs it")
    if name == "lcm":
        return LCM, LCM
    pytest.importorskip("zenoh", reason="the extra `zenoh` is not installed")
    return zenoh_bus(link.here), zenoh_bus(link.there)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("bus", ["lcm", "zenoh"])
def test_two_commands_of_the_page_run_a_mission_with_pictures_across(bus: str, link: Link, tmp_path: Path) -> None:
    brain, robot = (
        [url if word == LCM else word for word in documented(name)]
        for name, url in zip(("brain", "robot"), buses_of(bus, link, sweep_only="lcm"), strict=True)
    )
    with ExitStack() as stack:
        of_brain = stack.enter_context(started(link.here, brain, tmp_path / "brain"))
        of_robot = stack.enter_context(started(link.there, robot, tmp_path / "robot"))
        assert of_brain.process.wait(240) == 0, of_brain.text() + of_robot.text()
        wait_for(lambda: "has not been heard for" in of_robot.text(), 20.0, of_robot.text)
    assert "Followed for" in of_brain.text()
    assert list(tmp_path.glob("brain/runs/*/pictures/observe-*.jpg")), of_brain.text()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("bus", ["lcm", "zenoh"])
def test_cuts_at_random_lose_no_event_and_move_no_robot(bus: str, link: Link, tmp_path: Path) -> None:
    with split_run(link, buses_of(bus, link, sweep_only="zenoh"), tmp_path) as split:
        for seed in range(FIRST, FIRST + (SEEDS or 1)):
            _Mission(split, seed).run()
        wait_for(split.is_whole, 120.0, lambda: split.get("/modules"))
        _check_commands(split)


def _check_commands(split: Split) -> None:
    """The part on the other machine is seen, read and stopped from here, and then the one here is."""
    (shown,) = json.loads(split.command("status", "--json"))
    assert shown["machine"] == "brain-side"
    assert "robot-side" in json.dumps(shown)
    split.command("status", "--ready")
    log = min(split.state.glob("robot/runs/*/logs/*.log"))
    with log.open("a") as file:
        file.write("written on the robot\n")
    assert "written on the robot" in split.command("logs", "--machine", "robot-side")
    assert split.robot.process.poll() is None
    split.command("stop", "--everywhere")
    assert (split.robot.process.wait(30), split.brain.process.wait(30)) == (143, 143), split.robot.text()


class _Mission:
    """One mission, with cuts in its midst that follow from a seed."""

    def __init__(self, split: Split, seed: int) -> None:
        self._split, self._seed = split, seed
        self._random = random.Random(seed)
        self._after = split.get("/healthz")["offset"]

    def run(self) -> None:
        split = self._split
        wait_for(split.is_whole, 120.0, lambda: split.get("/modules"))
        if self._seed % 2:  # who follows stands while the person does
            wait_for(self._turns, 120.0, lambda: split.get("/calls"))
        else:
            split.call("say", text="follow the person in the red shirt for 15 seconds")
            wait_for(lambda: split.get("/calls?state=open"), 30.0, lambda: split.get("/calls"))
        for _ in range(self._random.choice((1, 1, 2))):
            time.sleep(self._random.uniform(0.0, 1.5))
            self._cut()
        wait_for(lambda: not split.get("/calls?state=open"), 180.0, lambda: split.get("/calls?state=open"))
        self._check_events()

    def _turns(self) -> bool:
        """Begin to turn; where the machine is too busy for odometry, that fails."""
        call = self._split.call("turn", angle_deg=540)
        while self._split.get(f"/calls/{call['call_id']}")["state"] != "closed":
            if self._split.moves():
                return True
            time.sleep(0.1)
        return False

    def _cut(self) -> None:
        how: Cut = self._random.choice(list(CUTS))
        length_s = math.exp(self._random.uniform(math.log(SHORTEST_S), math.log(LONGEST_S))) if SEEDS else ONLY_S
        pauses = self._random.random() < 0.5
        answer: list[dict[str, Any]] = []
        pausing = threading.Thread(target=lambda: answer.append(self._pause()))
        with self._split.link.cut(how):
            cut_at = time.monotonic()
            if pauses:
                time.sleep(min(length_s / 2, 1.0))
                pausing.start()
            time.sleep(max(0.0, cut_at + length_s - time.monotonic()))
            stands = cut_at + STANDS_WITHIN_S, cut_at + length_s
            moved = self._split.moved_between(*stands)
        what = f"seed {self._seed}: {how} for {length_s:.1f} s"
        looked = self._split.seen_between(*stands)
        assert looked or length_s < STANDS_WITHIN_S + 1.0, f"{what}: nobody looked"
        assert not moved, f"{what}: moved {moved[0]['at'] - cut_at:.1f} s after the cut: {moved}"
        if pauses:
            pausing.join()
            self._check_pause(what, answer[0])
            self._split.call("resume", "close")
        sys.stdout.write(f"{what}{', paused: ' + str(answer[0]['result']) if pauses else ''}\n")

    def _pause(self) -> dict[str, Any]:
        answer = self._split.call("pause", "close", reason="a test")
        answer["at"] = time.monotonic()
        return answer

    def _check_pause(self, what: str, answer: dict[str, Any]) -> None:
        """Who says that the robot is held has heard so from the gate, and then it stands."""
        if answer["outcome"] == "lost":  # the agent was not heard, so nobody says that anything is held
            return
        assert answer["outcome"] == "completed", f"{what}: {answer}"
        held, not_held = answer["result"]["held"], answer["result"]["not_held"]
        assert held or not_held, f"{what}: {answer}"
        if held and not not_held:
            time.sleep(0.5)
            moved = self._split.moved_between(answer["at"] + 0.2, time.monotonic())
            assert not moved, f"{what}: {answer}, but it moved: {moved}"

    def _check_events(self) -> None:
        """Each call's events are there once, in order and to the end, and both machines agree how it ended."""
        for call_id, events in self._split.journal(self._after).items():
            what = f"seed {self._seed}: {[(seq, kind) for seq, kind, _ in events]}"
            assert [seq for seq, _, _ in events] == list(range(1, len(events) + 1)), what
            kinds = [kind for _, kind, _ in events]
            assert (kinds[0], kinds[-1], kinds.count("close")) == ("open", "close", 1), what
            if events[0][2]["module"] == RUN_THERE:
                self._check_agreement(call_id, events[-1][2]["data"]["outcome"], what)

    def _check_agreement(self, call_id: str, outcome: str, what: str) -> None:
        """What the robot's machine has said of a call that it ran, or has learnt since, is what the bridge says."""
        there = self._split.outcomes_there
        wait_for(lambda: there().get(call_id) == outcome, 10.0, lambda: f"{what}: {outcome}, there {there()}")
