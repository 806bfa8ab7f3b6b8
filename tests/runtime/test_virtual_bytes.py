"""A whole mission in virtual time is the same bytes for the same seed, in whatever process it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.runtime.facts import run_facts

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[2]


def started(hash_seed: str, *seeds: str) -> subprocess.Popen[str]:
    """A process of its own. Dicts of strings, addresses and the number of BLAS threads differ between the two."""
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "OPENBLAS_NUM_THREADS": hash_seed}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.runtime.virtual_mission", *seeds],
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )


def result_of(process: subprocess.Popen[str]) -> Any:
    out, _ = process.communicate(timeout=50)
    assert process.returncode == 0
    return json.loads(out)


@pytest.mark.feature("F2")
def test_one_seed_is_one_hash_in_every_process() -> None:
    with started("1", "7") as one, started("2", "7", "8") as other:
        first, second = result_of(one), result_of(other)
    assert first["runs"]["7"] == second["runs"]["7"]
    assert second["runs"]["8"]["digest"] != second["runs"]["7"]["digest"]
    counts = first["runs"]["7"]["channels"]
    assert counts["/color_image#sensor_msgs.Image"] == 80
    assert counts["/odom#nav_msgs.Odometry"] == 160
    assert counts["/tool_streams#dimos_streams.ToolStreamEvent"] > 20
    assert counts["/skill_calls#dimos_streams.SkillCall"] >= 2
    assert first["facts"] == second["facts"] == run_facts()


def test_facts_name_what_bytes_depend_on() -> None:
    facts = run_facts()
    assert {"python", "numpy", "mujoco-core", "simplejpeg", "libc", "processor", "libm_features"} <= facts.keys()
    assert all(isinstance(value, str) for value in facts.values())
