"""Imports what settings name as ``"package.module:attribute"``: classes of modules, blueprints, gates, conditions."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from dimos_streams.common.readable.shortening import shortened
from dimos_streams.errors import UserError, suggest

EXTRAS = {
    "mujoco": "sim",
    "simplejpeg": "sim",
    "cv2": "vision",
    "openai": "openai",
    "onnxruntime": "onnx",
    "watchfiles": "reload",
    "cyclonedds": "ros2",
}
"""The extra of this package that brings each Python package."""
_MAX_SHOWN = 300
_BUILT_FOR = {"cyclonedds": "x86-64 and Python 3.11 to 3.13"}
"""Packages of extras that have no wheels for other machines, where the extra brings nothing."""


def is_reference(text: str) -> bool:
    """Return whether a text is of the form ``"package.module:Name"``, or ``"package.module:Class.attribute"``."""
    module, colon, attribute = text.partition(":")
    return bool(colon) and all(part.isidentifier() for part in [*module.split("."), *attribute.split(".")])


def import_attribute(reference: str) -> Any:
    """The object that ``"package.module:attribute"`` names. Raises ``UserError`` that names the nearest, or what is
    missing."""
    if not is_reference(reference):
        raise UserError(f"{reference!r} is not of the form 'package.module:Name'")
    module_name, _, attribute = reference.partition(":")
    found: Any = import_module(module_name)
    for part in attribute.split("."):
        if not hasattr(found, part):
            names = [name for name in dir(found) if not name.startswith("_")]
            raise UserError(f"{module_name!r} has no {attribute!r}{suggest(part, names)}")
        found = getattr(found, part)
    return found


def import_module(name: str) -> ModuleType:
    """The module of a dotted name. Raises ``UserError`` that says what is missing, or what went wrong in it."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise UserError(f"{name!r} is not of the form 'package.module'")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(f"{missing}."):
            package, dot, last = missing.rpartition(".")
            near = suggest(last, _beside(missing), before=package + dot)
            where = near or " in the working directory, on PYTHONPATH, or installed"
            raise UserError(f"there is no Python module {missing!r}{where}") from error
        why = _not_generated(missing) or f"{how_to_get(missing)}{_or_own(missing)}"
        raise UserError(f"{name!r} can't be imported: {why}") from error
    except ImportError as error:
        why = _not_generated(error.name or "") or f"{type(error).__name__}: {error}"
        raise UserError(f"{name!r} can't be imported: {why}") from error
    except Exception as error:  # somebody's module may raise anything when it is imported
        raise UserError(f"{name!r} can't be imported: {type(error).__name__}: {_in_a_line(error)}") from error


def _in_a_line(error: Exception) -> str:
    """The text of an error, without most of the advice that some libraries add."""
    return shortened(" ".join(str(error).split()), _MAX_SHOWN)


def _not_generated(name: str) -> str:
    """Return the message that a folder has definitions of messages but no code made from them; empty if it is not
    so."""
    for entry in sys.path:
        folder = Path(entry or ".", *name.split("."))
        bare = sorted(path.name for path in folder.glob("*.lcm") if not path.with_suffix(".py").exists())
        if name and bare:
            return (
                f"{str(folder)!r} has message definitions ({', '.join(bare)}) but no classes: "
                f"run 'dimos-streams messages generate {folder.parent}'"
            )
    return ""


def _or_own(missing: str) -> str:
    """Return where a file of somebody's own is looked for, if a missing package may be one; empty if it is known."""
    if missing.partition(".")[0] in EXTRAS:
        return ""
    return "; or is it a file of yours? Those are found in the working directory and on PYTHONPATH"


def _beside(name: str) -> list[str]:
    """The names of the modules in the package that ``name`` would be in."""
    package = name.rpartition(".")[0]
    if not package:
        return []
    path = getattr(importlib.import_module(package), "__path__", [])
    return [info.name for info in pkgutil.iter_modules(path)]


def how_to_get(package: str) -> str:
    """Return the message that a Python package is not installed, and what installs it."""
    root = package.partition(".")[0]
    extra = EXTRAS.get(root)
    limit = f" (it comes ready-made for {_BUILT_FOR[root]} only)" if root in _BUILT_FOR else ""
    wanted = f"'dimos-streams[{extra}]'" if extra else repr(package)
    return f"{package!r} is not installed: pip install {wanted}{limit}"
