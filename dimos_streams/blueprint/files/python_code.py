"""Files with Python code in which blueprints may be: how these are given. Nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from dimos_streams.common.process.nearby import command_with
from dimos_streams.documents.document import display_path

_MAKERS = ("blueprint", "include")
_ATTRIBUTE = "ATTRIBUTE"
_MAX_SHOWN = 3


def references_in(file: Path) -> str:
    """Return how the blueprints of a file are given: ``"'tip:one' or 'tip:two'"`` for those that it plainly has, else
    ``"'tip:ATTRIBUTE'"``."""
    names = list(_blueprints_in(file))[:_MAX_SHOWN] or [_ATTRIBUTE]
    path = Path(display_path(file)).with_suffix("")
    if all(map(str.isidentifier, path.parts)):
        return _references(".".join(path.parts), names)
    if not path.stem.isidentifier():
        return f"'package.module:{_ATTRIBUTE}'"
    return f"{_references(path.stem, names)}, behind `{command_with(str(path.parent))}`"


def _references(module: str, names: list[str]) -> str:
    return " or ".join(repr(f"{module}:{name}") for name in names)


def _blueprints_in(file: Path) -> Iterator[str]:
    """Yield the names to which a module gives what a function that makes blueprints returns."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=called)) if _makes(called):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Call(func=called)) if _makes(called):
                yield name


def _makes(called: ast.expr) -> bool:
    match called:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in _MAKERS
    return False
