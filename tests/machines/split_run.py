"""A blueprint on two machines, as an operator beside it sees it; the commands of docs/machines.md."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from tests.helpers import wait_for
from tests.namespaces import INTERFACE, Link, Machine
from tests.skill_calls import call_skill

ROOT = Path(__file__).parents[2]
BRIDGE = "http://127.0.0.1:7780"
"""In a network of its own nobody else takes the usual port."""
_LEARNT = re.compile(r"call (\S+) ended here as \w+; the bridge had closed it as (\w+) before")
STILL_M_S, STILL_RAD_S = 0.02, 0.05


def documented(name: str) -> list[str]:
    """The words of a command of docs/machines.md."""
    text = (ROOT / "docs" / "machines.md").read_text()
    found = re.search(rf"<!-- command: {name} -->\n```bash\n(.*?)```", text, re.DOTALL)
    assert found is not None, name
    return shlex.split(found[1].replace("\\\n", " "))


def routed(link: Link) -> None:
    """Multicast goes to the other machine, as `doctor` advises."""
    for machine in (link.here, link.there):
        with machine.entered():
            subprocess.run(["ip", "route", "add", "224.0.0.0/4", "dev", INTERFACE], check=True)


def zenoh_bus(machine: Machine) -> str:
    """The bus of a machine, as docs/machines.md has it."""
    return f"zenoh:///?interface={INTERFACE}&listen={machine.address}:0"


@dataclass
class Lines:
    """What a process prints, a line each, with the time of its arrival."""

    process: subprocess.Popen[str]
    lines: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line))

    def json(self) -> list[dict[str, Any]]:
        return [json.loads(line) for _, line in list(self.lines) if line.startswith("{")]

    def begins(self) -> None:
        """Wait until this part of a run has met the other."""
        wait_for(lambda: "is there" in self.text() or self.process.poll() is not None, 240.0, self.text)
        assert self.process.poll() is None, self.text()

    def text(self) -> str:
        return "".join(line for _, line in list(self.lines))


@contextmanager
def started(machine: Machine, command: Sequence[str], state: Path) -> Iterator[Lines]:
    """A process on a machine, with runs of its own; it is ended in order."""
    env = {**os.environ, "DIMOS_STREAMS_STATE_DIR": str(state), "PYTHONUNBUFFERED": "1"}
    if command[0] == "dimos-streams":
        command = [sys.executable, "-m", "dimos_streams", *command[1:]]
    with machine.entered():
        process = subprocess.Popen(
            command, env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    with process:
        try:
            yield Lines(process)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(25)
            except subprocess.TimeoutExpired:
                process.kill()


@dataclass(frozen=True)
class Split:
    """Both parts while they run. The test is on the machine with the bridge."""

    link: Link
    robot: Lines
    brain: Lines
    state: Path

    def call(self, skill: str, wait: str | None = None, **arguments: Any) -> dict[str, Any]:
        """Call a skill; the event that was waited for, or only the call's id."""
        return call_skill(BRIDGE, skill, arguments, wait=wait, begins_within_s=60.0)

    def command(self, *arguments: str) -> str:
        """What a command prints on the machine with the bridge, where it succeeds."""
        done = subprocess.run(
            [sys.executable, "-m", "dimos_streams", *arguments],
            env={**os.environ, "DIMOS_STREAMS_STATE_DIR": str(self.state / "brain")},
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done
        return done.stdout

    def get(self, path: str) -> Any:
        return requests.get(f"{BRIDGE}{path}", timeout=120).json()

    def is_whole(self) -> bool:
        """Whether the bridge hears everybody."""
        return all(module["alive"] for module in self.get("/modules"))

    def moves(self) -> bool:
        seen = self._seen()
        return bool(seen) and not _is_still(seen[-1])

    def moved_between(self, begin: float, end: float) -> list[Mapping[str, Any]]:
        """What was seen of the robot's motion between two times of ``time.monotonic``."""
        return [each for each in self.seen_between(begin, end) if not _is_still(each)]

    def seen_between(self, begin: float, end: float) -> list[Mapping[str, Any]]:
        """What was seen of the robot between two times of ``time.monotonic``, moving or not."""
        return [each for each in self._seen() if begin <= each["at"] <= end]

    def _seen(self) -> list[dict[str, Any]]:
        lines = (self.state / SEEN).read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def outcomes_there(self) -> dict[str, str]:
        """How calls ended by the last word of the robot's machine: what it said, or has learnt since."""
        said = {
            event["call_id"]: event["data"]["outcome"] for event in self.robot.json() if event.get("type") == "close"
        }
        for log in self.state.glob("robot/runs/*/logs/*.log"):
            said |= dict(_LEARNT.findall(log.read_text()))
        return said

    def journal(self, after: int) -> dict[str, list[tuple[int, str, dict[str, Any]]]]:
        """Number, type and data of the events of each call behind an offset, as the bridge has journalled them."""
        (path,) = self.state.glob("brain/runs/*/journal.sqlite")
        found = defaultdict(list)
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            rows = db.execute(
                "SELECT call_id, seq, type, body FROM events WHERE offset > ? ORDER BY offset", (after,)
            )
            for call_id, seq, kind, body in rows:
                found[call_id].append((seq, kind, json.loads(body)))
        return found


def _is_still(seen: Mapping[str, Any]) -> bool:
    return bool(seen["speed"] < STILL_M_S and seen["turn"] < STILL_RAD_S)


SPLIT = """
name: split
include:
  - blueprint: follow-person
    processes: {robot: seen}
modules:
  watcher:
    type: tests.machines.watcher:Watcher
    process: seen
    config: {file: FILE}
machines:
  robot-side: [robot, watcher, gate, drive]
  brain-side: [detector, follow, lookout, observe, bridge, agent]
"""
"""As the stock blueprint, but that calls are run on both machines, and that the robot is watched from within."""
SEEN = "seen.jsonl"
"""What was seen of it."""


@contextmanager
def split_run(link: Link, buses: tuple[str, str], state: Path) -> Iterator[Split]:
    """Both parts, ready, with the brain's bus and the robot's."""
    split_blueprint = state / "split.yaml"
    split_blueprint.write_text(SPLIT.replace("FILE", str(state / SEEN)))
    (state / SEEN).touch()
    brain, robot = (
        ["dimos-streams", "run", str(split_blueprint), "--machine", name, "--bus", bus, "--json"]
        for name, bus in zip(("brain-side", "robot-side"), buses, strict=True)
    )
    with ExitStack() as stack:
        lines = [
            stack.enter_context(started(machine, command, state / name))
            for machine, command, name in (
                (link.there, robot, "robot"),
                (link.here, brain, "brain"),
            )
        ]
        split = Split(link, lines[0], lines[1], state)
        split.robot.begins()
        split.brain.begins()
        wait_for(lambda: (state / SEEN).read_text(), 120.0, split.robot.text)
        yield split
