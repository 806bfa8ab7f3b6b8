"""What many robots in one run cost: start, memory, processor, stop, and the speed of virtual time.

    python -m benchmarks.robots [--robots 1 3 10] [--sensors HZ] [--json] [--only live|virtual]

Each robot is a stock one with its skills and an agent, in a namespace of its own, beside one bridge. They are light
ones: their cameras have 64 x 48 pixels, as rays are what a camera costs, and that is the same for each of them; with
``--sensors`` camera and range finder measure only so often in a second, instead of ten times. Runs
are started by the command line, as people start them. Seconds of the processor are those of all processes of a run;
they, and memory, say something on a busy machine, too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.process_tree import usage_of
from benchmarks.table import machine_line
from tests.ports import free_bus, free_port

_SETTLE_S = 3.0
_IDLE_S = 10.0
_VIRTUAL_S = 10.0
_READY_BOUND_S = 240.0
_STOP_BOUND_S = 240.0
_LIGHT = {"robot.camera_width": 64, "robot.camera_height": 48}
_SENSORS = ("robot.camera_hz", "robot.lidar_hz", "robot.ground_truth_hz")


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """One live run. ``processor`` is in seconds, a share is of one core."""

    robots: int
    ready_s: float
    ready_processor_s: float
    processes: int
    robot_mb: float
    """Proportional set size of all processes, a robot."""
    idle_share: float
    stop_s: float
    load: float
    """Of the machine, averaged over a minute, before the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Virtual:
    """One run in virtual time."""

    robots: int
    speed: float
    """Times as fast as real time."""
    processor_speed: float
    """Seconds of virtual time that a second of the processor makes, once the modules are up."""
    load: float


def write_blueprint(path: Path, robots: int, sensors_hz: float | None = None) -> None:
    """A blueprint of so many light robots and one bridge."""
    settings = _LIGHT | ({} if sensors_hz is None else dict.fromkeys(_SENSORS, sensors_hz))
    include = [
        {"blueprint": "robot-and-agent", "namespace": f"robot{number}", "set": settings}
        for number in range(1, robots + 1)
    ]
    modules = {"bridge": {"type": "dimos_streams.bridge.module:Bridge"}}
    path.write_text(json.dumps({"name": "robots", "modules": modules, "include": include}))


def measure_live(robots: int, sensors_hz: float | None = None) -> Live:
    """Start a run, let it idle, and stop it. Raises ``RuntimeError`` if it is never ready."""
    load = os.getloadavg()[0]
    with _started(robots, sensors_hz, "--bus", free_bus(), "--port", str(free_port())) as run:
        began = time.monotonic()
        _until_ready(run, began + _READY_BOUND_S)
        ready_s, at_ready = time.monotonic() - began, usage_of(run.pid)
        time.sleep(_SETTLE_S)
        before, idle_from = usage_of(run.pid), time.monotonic()
        time.sleep(_IDLE_S)
        idle, idle_s = usage_of(run.pid, memory=True), time.monotonic() - idle_from
        run.send_signal(signal.SIGINT)
        stopping = time.monotonic()
        run.wait(_STOP_BOUND_S)
        stop_s = time.monotonic() - stopping
    return Live(
        robots=robots,
        ready_s=round(ready_s, 2),
        ready_processor_s=round(at_ready.processor_s, 2),
        processes=idle.processes,
        robot_mb=round(idle.memory_mb / robots, 1),
        idle_share=round((idle.processor_s - before.processor_s) / idle_s, 3),
        stop_s=round(stop_s, 2),
        load=round(load, 1),
    )


def measure_virtual(robots: int, sensors_hz: float | None = None) -> Virtual:
    """Run for some seconds of virtual time, and for a moment, so that the start is not counted."""
    load = os.getloadavg()[0]
    summaries, costs = [], []
    for duration_s in (0.1, _VIRTUAL_S):
        with _started(robots, sensors_hz, "--virtual-time", "--duration", str(duration_s)) as run:
            lines = [json.loads(line) for line in run.communicate()[0].splitlines()]
            summaries.append(next(line for line in lines if line["kind"] == "summary"))
            costs.append(_processor_of_ended())
    ran_s = summaries[1]["ran_s"] - summaries[0]["ran_s"]
    return Virtual(
        robots=robots,
        speed=round(summaries[1]["ran_s"] / summaries[1]["wall_s"], 1),
        processor_speed=round(ran_s / (costs[1] - costs[0]), 1),
        load=round(load, 1),
    )


_ended_s = [0.0]


def _processor_of_ended() -> float:
    """Seconds of the processor that processes have used which have ended since this was asked last."""
    times = os.times()
    used = times.children_user + times.children_system - _ended_s[0]
    _ended_s[0] += used
    return used


@contextlib.contextmanager
def _started(robots: int, sensors_hz: float | None, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A run of the command line, with a directory of its own for its files, that is ended at the latest here."""
    with tempfile.TemporaryDirectory() as directory:
        blueprint = Path(directory) / "robots.json.yaml"
        write_blueprint(blueprint, robots, sensors_hz)
        command = [sys.executable, "-m", "dimos_streams", "run", str(blueprint)]
        environment = {**os.environ, "DIMOS_STREAMS_STATE_DIR": directory}
        run = subprocess.Popen(
            [*command, "--json", *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            yield run
        finally:
            run.kill()
            run.wait()
            assert run.stdout is not None
            run.stdout.close()


def _until_ready(run: subprocess.Popen[str], deadline: float) -> None:
    assert run.stdout is not None
    for line in run.stdout:
        if json.loads(line)["kind"] == "ready":
            return
        if time.monotonic() > deadline:
            break
    raise RuntimeError(f"the run has ended before it was ready, or took longer than {_READY_BOUND_S:g} s")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", type=int, nargs="+", default=[1, 3, 10])
    parser.add_argument("--sensors", type=float, metavar="HZ")
    parser.add_argument("--only", choices=("live", "virtual"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    live = [measure_live(robots, options.sensors) for robots in options.robots] if options.only != "virtual" else []
    virtual = (
        [measure_virtual(robots, options.sensors) for robots in options.robots] if options.only != "live" else []
    )
    if options.json:
        print(json.dumps({"live": [asdict(row) for row in live], "virtual": [asdict(row) for row in virtual]}))
        return
    print(machine_line())
    for rows in (live, virtual):
        _print_table([asdict(row) for row in rows])


def _print_table(rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        print("".join(f"{name:>18}" for name in rows[0]))
    for row in rows:
        print("".join(f"{value:>18}" for value in row.values()))


if __name__ == "__main__":
    main()
