"""The pages list what there is: models, why turns stop, ready-made stop conditions, what a scene may have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from dimos_streams.agent import models
from dimos_streams.agent.config import StopWhen
from dimos_streams.agent.missions import end_reasons
from dimos_streams.agent.models.protocol import CALL_FAILED
from dimos_streams.robot.simulation.events import SceneEvent
from dimos_streams.robot.simulation.furniture import KINDS
from dimos_streams.robot.simulation.settings import COLOURS, FurnitureSettings, PersonSettings, SceneSettings

DOCS = Path(__file__).parents[2] / "docs"
_OF_MODELS = {"content_filter", "script_ended"}
"""Reasons that models give, which the page does not name one by one."""


def first_cells(page: str, head: str) -> list[str]:
    """What stands in the first column of the table with that head."""
    _, found, rest = (DOCS / page).read_text().partition(f"{head}\n")
    assert found, f"docs/{page} has no table {head!r}"
    rows = rest.partition("\n\n")[0].splitlines()[1:]
    return [row.split(" | ")[0].removeprefix("| ") for row in rows]


def quoted(page: str, start: str, end: str = ".") -> list[str]:
    """What is quoted in a sentence of a page."""
    _, found, rest = (DOCS / page).read_text().partition(start)
    assert found, f"docs/{page} does not say {start!r}"
    return re.findall(r"`([^`]+)`", rest.partition(end)[0])


def test_each_form_of_a_models_name_is_in_its_table() -> None:
    assert first_cells("models.md", "| `agent.model` | what it is | when |") == [
        f"`{form}`" for form in models._FORMS
    ]


def test_each_reason_for_which_a_turn_stops_is_in_its_table() -> None:
    cells = first_cells("agent-loop.md", "| reason | |")
    listed = {reason for cell in cells for reason in cell.split(", ")} - {"any other", "…"}
    assert listed - {"completed"} == end_reasons._MEANINGS.keys() - _OF_MODELS - {""}
    assert CALL_FAILED in listed


def test_each_ready_made_stop_condition_is_named() -> None:
    assert quoted("agent-loop.md", "Ready-made are", ":") == sorted(StopWhen.model_fields.keys() - {"conditions"})


def test_each_part_of_a_scene_is_named() -> None:
    assert ticked(first_cells("simulator.md", "| key | what it says |")) == set(SceneSettings.model_fields)
    kinds = quoted("simulator.md", "**Furniture** of a `kind` is a")
    assert tuple(kinds) == KINDS
    assert quoted("simulator.md", "**A colour** is", ", or") == list(COLOURS)
    page = (DOCS / "simulator.md").read_text()
    for settings in (FurnitureSettings, PersonSettings, SceneEvent):
        missing = [name for name in settings.model_fields if not re.search(rf"`{name}\b", page)]
        assert missing == [], f"docs/simulator.md does not name these of {settings.__name__}"


def ticked(cells: Iterable[str]) -> set[str]:
    """The cells without the marks of code."""
    return {cell.strip("`") for cell in cells}
