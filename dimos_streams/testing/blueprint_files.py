"""The files of blueprints that tests name: beside the test, or in the working directory."""

from __future__ import annotations

from pathlib import Path

from dimos_streams.blueprint.load import is_path
from dimos_streams.common.process.disk import real_path
from dimos_streams.documents.document import display_path, documents_beside
from dimos_streams.errors import UserError, suggest


def found_from(folder: Path, reference: str) -> str:
    """Return the reference to a blueprint, named in a test of ``folder``, as the working directory has it. Raises
    ``UserError`` for a file that is in neither."""
    beside, path = folder / reference, Path(reference)
    if beside.is_file():
        return str(beside)
    if is_path(reference) and not path.exists():
        places = dict.fromkeys(display_path(real_path(place)) for place in (beside, path))
        names = documents_beside(beside) + documents_beside(path)
        near = suggest(path.name, names, before=reference.removesuffix(path.name))
        raise UserError(f"there is no blueprint file {' or '.join(map(repr, places))}{near}")
    return reference
