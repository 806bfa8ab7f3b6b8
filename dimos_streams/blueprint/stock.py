"""The blueprints that have a name: those of this package, and those that other packages register."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import Any

from dimos_streams.blueprint.files.python_code import references_in
from dimos_streams.common.process.nearby import folders_in
from dimos_streams.errors import UserError, suggest

GROUP = "dimos_streams.blueprints"
"""The group of entry points, each ``package.module:ATTRIBUTE`` of a ``Blueprint``, or of the ``Path`` of a file."""


@dataclass(frozen=True, slots=True)
class StockBlueprint:
    """A name and what it stands for: a YAML file, or a reference ``"package.module:ATTRIBUTE"``."""

    name: str
    target: Path | str
    package: str = ""
    """The installed package that registers it; empty for one of this package's own."""


def stock_blueprints() -> dict[str, StockBlueprint]:
    """Return all stock blueprints by name, in order. This package's own can't be replaced."""
    registered = {
        entry.name: StockBlueprint(entry.name, entry.value, entry.dist.name if entry.dist else "")
        for entry in entry_points(group=GROUP)
    }
    return dict(sorted((registered | _own()).items()))


def find_stock(name: str, folder: Path | None = None) -> StockBlueprint:
    """The stock blueprint of a name. Raises ``UserError`` that names the nearest, or the file of that name in the
    folder in which paths are looked for."""
    known = _own()
    if name not in known:  # asking every installed package takes longer than reading a blueprint
        known = stock_blueprints()
    if name not in known:
        offered = ", ".join(known) or "none"
        near = _there(folder, name) or suggest(name, known)
        raise UserError(f"no blueprint is called {name!r}{near} (stock: {offered})")
    return known[name]


def _there(folder: Path | None, name: str) -> str:
    """Return what has a name in a folder or in those below it: a package that registers it where it is installed, or
    a file; a file of Python code only in the folder itself."""
    if folder is None:
        return ""
    folders = [folder, *(folder / inner for inner in folders_in(folder))]
    files = (file for each in folders for file in sorted(each.glob("*.y*ml")) if file.stem == name)
    found = [repr(str(file.relative_to(folder))) for file in files]
    if (code := folder / f"{name}.py").is_file():
        found.append(references_in(code))
    return _not_installed(folders, name) or next((f"; did you mean {each}?" for each in found), "")


def _not_installed(folders: Iterable[Path], name: str) -> str:
    """Return how to install the package in one of ``folders`` that would register a name; empty if none would."""
    for folder in folders:
        project = folder / "pyproject.toml"
        try:
            found: Any = tomllib.loads(project.read_text(encoding="utf-8"))
            found["project"]["entry-points"][GROUP][name]
        except (OSError, ValueError, LookupError, TypeError):  # no such file, or it does not register the name
            continue
        why = f"the package of {project} registers it, and is not installed here"
        return f": {why}: `pip install --editable {shlex.quote(str(folder))}`"
    return ""


def _own() -> dict[str, StockBlueprint]:
    folder = Path(str(files("dimos_streams.blueprints")))
    return {path.stem: StockBlueprint(path.stem, path) for path in folder.glob("*.yaml")}
