"""Robots that share no code with the package, on Fast DDS with the names and types of ROS 2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.ros2.fast_dds import FastDdsRobot, build

PICTURE = (48, 64)


@pytest.fixture(scope="session")
def robot_program(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The robot's program. It is kept for other sessions, until its source changes, if pytest keeps anything."""
    pytest.importorskip("cyclonedds", reason="the extra `ros2` is not installed")
    cache: pytest.Cache | None = getattr(pytestconfig, "cache", None)  # absent with `-p no:cacheprovider`
    return build(cache.mkdir("fast-dds-robot") if cache is not None else tmp_path_factory.mktemp("fast-dds-robot"))


@pytest.fixture(scope="module")
def robot(robot_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastDdsRobot]:
    """A robot that several tests use."""
    simplejpeg = pytest.importorskip("simplejpeg")
    picture = tmp_path_factory.mktemp("robot") / "picture.jpg"
    picture.write_bytes(simplejpeg.encode_jpeg(np.full((*PICTURE, 3), (200, 30, 30), np.uint8), colorspace="RGB"))
    started = FastDdsRobot(robot_program, picture)
    yield started
    started.kill()
