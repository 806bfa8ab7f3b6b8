"""The page's own scripts as one: a browser asks for a hundred modules one wave after the other, for one at once.

It takes the few forms of ``import`` and ``export`` that the page is written in, and refuses others.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

_IMPORT = re.compile(r'^import (?:(?P<default>\w+)|\{(?P<names>[^}]*)\}) from "(?P<source>[^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
_OTHER_FORM = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def linked(main: str, sources: Mapping[str, str]) -> str:
    """A module that does what ``main`` does: all that it needs, each module in a function of its own and behind those
    that it needs itself. What is imported by a name of the page's import map stays outside.

    Args:
        main: The path of a module in ``sources``.
        sources: The text of every module, by path.

    Raises:
        ValueError: Modules import each other in a circle, or in a form that is not known here.
    """
    needed: dict[str, list[str]] = {}
    _gather(main, sources, needed)
    try:
        order = [*TopologicalSorter(needed).static_order()]
    except CycleError as error:
        raise ValueError(f"script modules import each other in a circle: {' → '.join(error.args[1])}") from error
    outside = dict.fromkeys(name for path in order for name in _imported(sources[path]) if not name.startswith("."))
    imports = [f'import * as {_variable(name)} from "{name}";\n' for name in outside]
    return "".join((*imports, *(_wrapped(path, sources[path]) for path in order)))


def _gather(path: str, sources: Mapping[str, str], needed: dict[str, list[str]]) -> None:
    """Add to ``needed`` the modules that a module needs, and those that they need."""
    if path in needed:
        return
    needed[path] = [_resolved(name, path) for name in _imported(sources[path]) if name.startswith(".")]
    for each in needed[path]:
        _gather(each, sources, needed)


def _imported(text: str) -> list[str]:
    return [found["source"] for found in _IMPORT.finditer(text)]


def _resolved(name: str, path: str) -> str:
    """The path of a module that the one at ``path`` imports; a name of the import map is one already."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) if name.startswith(".") else name


def _wrapped(path: str, text: str) -> str:
    def taken(found: re.Match[str]) -> str:
        names = f"{{ default: {found['default']} }}" if found["default"] else f"{{{found['names']}}}"
        return f"const {names.replace(' as ', ': ')} = {_variable(_resolved(found['source'], path))};"

    exported = _EXPORT.findall(text)
    body = _EXPORT.sub("", _IMPORT.sub(taken, text))
    if other := _OTHER_FORM.search(body):
        raise ValueError(f"{path}: {other[0]!r} is a form of import or export that the page is not written in")
    return f"// {path}\nconst {_variable(path)} = (() => {{\n{body}return {{ {', '.join(exported)} }};\n}})();\n"


def _variable(name: str) -> str:
    return "$" + re.sub(r"\W", "_", name)
