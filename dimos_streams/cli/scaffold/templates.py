"""Templates: the files below ``templates/``, with ``@name@`` and the like where a name belongs.

A file's own name ends in ``-tpl``, so that no tool takes it for what it will be, and begins with ``dot-`` where the
one that is made of it begins with a dot.
"""

from __future__ import annotations

import io
import keyword
import re
import tokenize
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path, PurePosixPath

FOLDER = Path(str(files("dimos_streams.cli.scaffold"))) / "templates"
_PLACEHOLDER = re.compile(r"@([A-Za-z]+)@")


def render(kind: str, values: Mapping[str, str]) -> dict[PurePosixPath, str]:
    """Return the files of a kind (``skill``, ``robot``, ``package``) by path, with the values put in."""
    folder = FOLDER / kind
    return {
        PurePosixPath(_fill(_path(path.relative_to(folder)), values)): _fill(path.read_text("utf-8"), values)
        for path in sorted(folder.rglob("*-tpl"))
    }


def identifiers(kind: str) -> frozenset[str]:
    """Return the names that the Python files of a kind use themselves: what is made can't have them."""
    found: set[str] = set()
    for path in FOLDER.joinpath(kind).rglob("*.py-tpl"):
        lines = io.StringIO(_PLACEHOLDER.sub("_", path.read_text("utf-8")))
        found.update(
            token.string for token in tokenize.generate_tokens(lines.readline) if token.type == tokenize.NAME
        )
    return frozenset(name for name in found if not keyword.iskeyword(name))


def _path(path: Path) -> str:
    parts = [re.sub(r"^dot-", ".", part) for part in path.parts]
    return "/".join(parts).removesuffix("-tpl")


def _fill(text: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: values[match[1]], text)
