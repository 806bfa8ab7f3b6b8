"""The blueprints that have a name: those of this package, and those that other packages register."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import Any

from dimos_streams.errors import UserError, suggest

GROUP = "dimos_streams.blueprints"
"""The group of entry points, each ``package.module:ATTRIBUTE`` of a ``Blueprint``, or of the ``Path`` of a file."""


@dataclass(frozen=True, slots=True)
class StockBlueprint:
    """A name and what it stands for: a YAML file, or a reference ``"package.module:ATTRIBUTE"``."""

    name: str
    target: Path | str


def stock_blueprints() -> dict[str, StockBlueprint]:
    """Return all stock blueprints by name, in order. This package's own can't be replaced."""
    registered = {entry.name: StockBlueprint(entry.name, entry.value) for entry in entry_points(group=GROUP)}
    return dict(sorted((registered | _own()).items()))


def find_stock(name: str, folder: Path | None = None) -> StockBlueprint:
    """The stock blueprint of a name. Raises ``UserError`` that names the nearest, or the file of that name in the
    folder in which paths are looked for."""
    known = _own()
    if name not in known:  # asking every installed package takes longer than reading a blueprint
        known = stock_blueprints()
    if name not in known:
        offered = ", ".join(known) or "none"
        near = _not_installed(folder, name) or suggest(name, _files(folder, name)) or suggest(name, known)
        raise UserError(f"no blueprint is called {name!r}{near} (stock: {offered})")
    return known[name]


def _not_installed(folder: Path | None, name: str) -> str:
    """What is to be done for a name that the package in a folder registers where it is installed."""
    if folder is None:
        return ""
    try:
        found: Any = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
        found["project"]["entry-points"][GROUP][name]
    except (OSError, ValueError, LookupError, TypeError):  # there is none, or it is not as such a file is
        return ""
    why = "the package of pyproject.toml registers it, and is not installed here"
    return f": {why}: `pip install --editable {folder}`"


def _files(folder: Path | None, name: str) -> list[str]:
    return [] if folder is None else [file.name for file in sorted(folder.glob("*.y*ml")) if file.stem == name]


def _own() -> dict[str, StockBlueprint]:
    folder = Path(str(files("dimos_streams.blueprints")))
    return {path.stem: StockBlueprint(path.stem, path) for path in folder.glob("*.yaml")}
