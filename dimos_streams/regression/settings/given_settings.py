"""The settings that were given for a replay itself: they win over what an operator had set in the recorded run."""

from __future__ import annotations

from dimos_streams.blueprint.model import ModuleSpec
from dimos_streams.blueprint.settings import COMMAND_LINE
from dimos_streams.regression.settings.initial_settings import Assignments

REPLAY = "replay"
"""The source of a value that the options of a replay give."""


def without_given(assignments: Assignments, spec: ModuleSpec) -> Assignments:
    """Return what an operator had set in a module, but for what was given for the replay, all of it or a part."""
    given = [
        key.split(".")[1:]
        for key, source in spec.sources.items()
        if key.startswith("config.") and source in (COMMAND_LINE, REPLAY)
    ]
    return {
        path: text
        for path, text in assignments.items()
        if not any(_is_inside(path.split("."), each) or _is_inside(each, path.split(".")) for each in given)
    }


def _is_inside(path: list[str], other: list[str]) -> bool:
    return path[: len(other)] == other
