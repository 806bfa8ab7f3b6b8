"""The robot of `robot/robot.cpp`: built once, run as a process of its own, asked what it does."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

SOURCE = Path(__file__).with_name("robot") / "robot.cpp"
_TRIES = 3
"""Domains in which a robot tries to begin: a program that is no test may be there."""
PACKAGES = "apt-get install g++ libfastrtps-dev"


def build(cache: Path) -> Path:
    """The program, built if the cache has not got it. Skips the test where its packages are not installed."""
    source = SOURCE.read_bytes()
    program = cache / f"robot-{hashlib.sha256(source).hexdigest()[:16]}"
    if program.exists():
        return program
    if shutil.which("g++") is None:
        pytest.skip(f"no C++ compiler: {PACKAGES}")
    new = program.with_suffix(f".{os.getpid()}")
    command = ["g++", "-std=c++17", "-o", str(new), str(SOURCE), "-lfastrtps", "-lfastcdr"]
    built = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if "fastdds/" in built.stderr and "No such file" in built.stderr:
        pytest.skip(f"no Fast DDS: {PACKAGES}")
    assert built.returncode == 0, built.stderr
    new.rename(program)
    return program


class OwnDomain:
    """A DDS domain that no other test of this machine has until ``close``.

    A robot of another test would be heard in it: one that is gone would not be missed. This process stays in each
    domain that it has entered, and knows the robots that were killed there until their leases have run out: it takes
    one that it has not had before, as long as there are any, else the one that it had longest ago.
    """

    _had: ClassVar[dict[int, None]] = {}

    def __init__(self) -> None:
        # The ports of domains above 100 are given out by the system, too.
        others = [number for number in range(1, 101) if number not in self._had]
        for number in (*random.SystemRandom().sample(others, len(others)), *self._had):
            self._claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                self._claim.bind(f"\0dimos_streams tests: DDS domain {number}")
            except OSError as error:
                self._claim.close()
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                self._had.pop(number, None)
                self._had[number] = None
                self.number = number
                return
        raise AssertionError("tests have all DDS domains")

    def close(self) -> None:
        """Let others have it. Twice is fine."""
        self._claim.close()


@dataclass(frozen=True, slots=True)
class RobotState:
    """What the robot itself says of itself."""

    x: float
    y: float
    yaw: float
    vx: float
    vy: float
    wz: float
    commands: int
    """Velocities that it has got, those of its own navigation included."""
    goals: int
    cancels: int
    status: int
    """Of its newest goal, by ``action_msgs/msg/GoalStatus``."""

    @property
    def still(self) -> bool:
        return (self.vx, self.vy, self.wz) == (0.0, 0.0, 0.0)


class FastDdsRobot:
    """A running robot."""

    def __init__(
        self,
        program: Path,
        picture: Path | None = None,
        address: str = "127.0.0.1",
        beside: FastDdsRobot | None = None,
        lease_s: int = 3,
    ) -> None:
        """``address`` is that of its only network interface; ``picture`` what its camera sees. It is in the domain of
        the robot ``beside`` it, if there is one. Whoever does not hear it for ``lease_s`` takes it for gone, also
        where it is the machine that stands still."""
        for _ in range(_TRIES):
            self._domain: OwnDomain = beside._domain if beside else OwnDomain()
            command = [str(program), str(self._domain.number), address, str(lease_s)]
            command += [str(picture)] if picture else []
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert self._process.stdout is not None
            begun = self._process.stdout.readline()
            if begun == "ready\n":
                return
            self.kill()
        raise AssertionError(f"the robot does not begin: {begun!r}, exit code {self._process.returncode}")

    @property
    def domain(self) -> int:
        """The domain that it is in, and nobody else."""
        return self._domain.number

    def state(self) -> RobotState:
        """What it does now."""
        return self.command("state")

    def command(self, name: str) -> RobotState:
        """Have it do something: mute, unmute, break, mend, stubborn, obey, yield."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        return RobotState(**json.loads(self._process.stdout.readline()))

    def vanish(self) -> None:
        """End its process at once and without a word."""
        self._process.kill()
        self._process.wait()

    def leave(self) -> None:
        """End its process in an orderly way."""
        self._process.communicate()

    def kill(self) -> None:
        """End it, and let others have its domain. Twice is fine."""
        self.vanish()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._domain.close()
