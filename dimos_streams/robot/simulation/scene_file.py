"""A scene from a YAML file of somebody's own, or from Python."""

from collections.abc import Sequence
from pathlib import Path

from dimos_streams.common.importing import import_attribute, kind_of
from dimos_streams.common.process.disk import at_home
from dimos_streams.documents.document import read_document
from dimos_streams.documents.problem import BlueprintError, Problem
from dimos_streams.documents.validation import validated
from dimos_streams.errors import UserError
from dimos_streams.robot.simulation.assembly import assembled
from dimos_streams.robot.simulation.scene import STOCK_SCENE, Scene
from dimos_streams.robot.simulation.settings import SceneSettings


def load_scene(reference: str) -> Scene:
    """The scene of a YAML file's path, or of ``"package.module:ATTRIBUTE"``, which is a ``Scene`` or a file's
    ``Path``; the stock one for an empty text.

    Raises ``UserError``; with file and line of each problem (``BlueprintError``) if the file's content is wrong.
    """
    if not reference:
        return STOCK_SCENE
    if reference.endswith((".yaml", ".yml")) or ":" not in reference:
        return read_scene(at_home(reference))
    found = import_attribute(reference)
    if isinstance(found, Path):
        return read_scene(found)
    if not isinstance(found, Scene):
        raise UserError(f"{reference!r} is neither a Scene nor the Path of a file but {kind_of(found)}")
    return found


def read_scene(path: Path) -> Scene:
    """The scene of a YAML file. Raises ``UserError`` as ``load_scene`` does."""
    document = read_document(path, "scene")
    scene, faults = assembled(validated(document, SceneSettings, _called), Scene())
    if faults:
        raise BlueprintError(Problem(fault.line, document.where(fault.path)) for fault in faults)
    return scene


def _called(path: Sequence[str | int]) -> str:
    """A part of the file in words."""
    match path:
        case ["people", int(index), *_]:
            return f"person number {index + 1}"
        case ["furniture", int(index), *_]:
            return f"furniture number {index + 1}"
        case ["events", int(index), *_]:
            return f"event number {index + 1}"
        case [key, *_]:
            return f"{key!r}"
    return "the scene"
