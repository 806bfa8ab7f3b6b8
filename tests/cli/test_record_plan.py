"""The recorder that ``run --record`` adds to a blueprint."""

from __future__ import annotations

from pathlib import Path

import pytest

from dimos_streams.blueprint.check import refuse_errors
from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.machines import part_of
from dimos_streams.cli.running.record_plan import NAME, RecordPlan
from dimos_streams.recording.metadata import describe


@pytest.mark.parametrize("machine", ["robot-side", "brain-side"])
def test_the_recorder_of_a_part_is_on_its_machine(machine: str, tmp_path: Path) -> None:
    part = part_of(resolve("follow-person-split"), machine)
    recorded = RecordPlan(path=tmp_path / "a.lcmlog").add_to(part, describe())
    assert recorded.modules[NAME].machine == machine
    refuse_errors(recorded)
