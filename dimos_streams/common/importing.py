"""Imports what settings name as ``"package.module:attribute"``: classes of modules, blueprints, gates, conditions."""

from __future__ import annotations

import contextlib
import importlib.util
import pkgutil
import re
import shlex
import sys
import threading
from collections.abc import Iterable
from importlib.machinery import PathFinder
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from dimos_streams.common.process.nearby import where_it_lies
from dimos_streams.common.process.own_code import raised_at, show_if_debugging
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.schemas.declaration_error import DeclarationError
from dimos_streams.errors import UserError, suggest

LIBRARY, SKILLS = "dimos_streams", "dimos_streams.skills"
"""The package of this library, and the one within it that has the stock skills."""
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
_MOST_OFFERED = 12
_BUILT_FOR = {"cyclonedds": "x86-64 and Python 3.11 to 3.13"}
"""Packages of extras that have no wheels for other machines, where the extra brings nothing."""
_NOWHERE = " in the working directory, on PYTHONPATH, or installed"
_NO_SUCH_NAME = re.compile(r"(cannot import name '(.+)' from '(.+)') \(.*\)")
"""Python's text for a name that a module does not have, with the module's file."""
_first: list[str] = []
"""The folder in which modules that somebody names are looked for first, if there is one."""


def is_within(name: str, package: str) -> bool:
    """Return whether a Python module is a package, or in it."""
    return name == package or name.startswith(f"{package}.")


def is_reference(text: str) -> bool:
    """Return whether a text is of the form ``"package.module:Name"``, or ``"package.module:Class.attribute"``."""
    module, colon, attribute = text.partition(":")
    return bool(colon) and all(part.isidentifier() for part in [*module.split("."), *attribute.split(".")])


def kind_of(found: object) -> str:
    """Return what was found under a reference that is not what it has to be, for people: ``function``, or the name of
    a class. An object's own words for itself may have its address."""
    return f"the class {found.__name__}" if isinstance(found, type) else type(found).__name__


def import_attribute(reference: str, beside: str = "") -> Any:
    """The object that ``"package.module:attribute"`` names. Raises ``UserError`` that names the nearest, or what is
    missing. A module that is not found may lie nearby, for instance in or around the folder ``beside``."""
    if not is_reference(reference):
        colon = ":".join(reference.rsplit(".", 1))
        near = suggest(reference, [colon] if is_reference(colon) else [])
        raise UserError(f"{reference!r} is not of the form 'package.module:Name'{near}")
    module_name, _, attribute = reference.partition(":")
    found: Any = import_module(module_name, beside)
    for part in attribute.split("."):
        if not _has(found, part, reference):
            names = [name for name in dir(found) if not name.startswith("_")]
            near = suggest(part, names) or _elsewhere(module_name, beside) or _offered(found, module_name)
            raise UserError(f"{module_name!r} has no {attribute!r}{near}")
        found = getattr(found, part)
    return found


def _offered(found: object, module_name: str) -> str:
    """Return the public classes and functions that a module makes, in brackets; empty if there are none."""
    members = getattr(found, "__dict__", {}).items()
    kinds = (type, FunctionType)
    made = sorted(
        name
        for name, each in members
        if isinstance(each, kinds) and each.__module__ == module_name and not name.startswith("_")
    )
    more = f" and {len(made) - _MOST_OFFERED} more" if len(made) > _MOST_OFFERED else ""
    return f" (it has {', '.join(made[:_MOST_OFFERED])}{more})" if made else ""


def _has(owner: object, name: str, reference: str) -> bool:
    """Return whether there is an attribute. Raises ``UserError`` where somebody's ``__getattr__`` fails to say so."""
    try:
        return hasattr(owner, name)
    except Exception as error:
        show_if_debugging(error)
        why = f"{type(error).__name__}: {_in_a_line(error)}"
        raise UserError(f"{reference!r} can't be looked up: {name!r} raises {why}{raised_at(error)}") from error


def find_named_first_in(folder: str) -> None:
    """Have modules that somebody names looked for in a folder first. Until one is named that is not of this library,
    nothing is looked for there: what lies there may be called as a module that we mean, and be anybody's."""
    _first[:] = [folder]


def import_module(name: str, beside: str = "") -> ModuleType:
    """The module of a dotted name. Raises ``UserError`` that says what is missing, or what went wrong in it; see
    ``import_attribute`` for ``beside``."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise UserError(f"{name!r} is not of the form 'package.module'")
    if not is_within(name, LIBRARY):
        sys.path[:0] = [folder for folder in _first if folder not in sys.path]
    try:
        with _printing_aside():
            _import_behind_a_folder(name.partition(".")[0])
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(f"{missing}."):
            where = _near(missing) or where_it_lies(name, beside) or _NOWHERE
            raise UserError(f"there is no Python module {missing!r}{where}") from error
        raise _unfit(name, _not_generated(missing) or _not_there(missing, beside), error) from error
    except ImportError as error:
        raise _unfit(name, _not_generated(error.name or "") or _no_such_name(error), error) from error
    except (UserError, DeclarationError) as error:  # what we say of a blueprint or skill in it is told whole
        kind = "TypeError: " if isinstance(error, DeclarationError) else ""
        raise _unfit(name, kind + " ".join(str(error).split()), error) from error
    except (Exception, SystemExit) as error:  # somebody's module may raise anything when it is imported
        raise _unfit(name, f"{type(error).__name__}: {_in_a_line(error)}", error) from error


def _printing_aside() -> contextlib.AbstractContextManager[object]:
    """The context in which what a module prints while it is imported, as some libraries do of themselves, goes to
    standard error: it is no output of whoever imports it. A thread leaves the output to the others."""
    is_main = threading.current_thread() is threading.main_thread()
    return contextlib.redirect_stdout(sys.stderr) if is_main else contextlib.nullcontext()


def _import_behind_a_folder(package: str) -> None:
    """Import a package that is installed with ``--editable`` where a mere folder of its name is on the path, as its
    checkout is in the folder above it: such packages are found after the path, where any folder counts as one."""
    if package in sys.modules:
        return
    on_path = PathFinder.find_spec(package)
    if on_path is None or on_path.origin is not None:
        return
    for finder in sys.meta_path:
        spec = None if finder is PathFinder else finder.find_spec(package, None)
        if spec is not None and spec.origin is not None and spec.loader is not None:
            sys.modules[package] = module = importlib.util.module_from_spec(spec)
            try:
                spec.loader.exec_module(module)
            except BaseException:
                del sys.modules[package]
                raise


def _unfit(name: str, why: str, error: BaseException) -> UserError:
    """The error of a module that can't be imported, with the line of own code at which it fails."""
    show_if_debugging(error)
    return UserError(f"{name!r} can't be imported: {why}{raised_at(error)}")


def _in_a_line(error: BaseException) -> str:
    """The text of an error, without most of the advice that some libraries add."""
    text = error.msg if isinstance(error, SyntaxError) else str(error)  # whose own text names the line once more
    return shortened(" ".join(text.split()), _MAX_SHOWN)


def _no_such_name(error: ImportError) -> str:
    """Return what an import of a name says, with the nearest in the place of the module's file if there is one."""
    text = str(error)
    if (found := _NO_SUCH_NAME.fullmatch(text)) and (near := suggest(found[2], dir(sys.modules.get(found[3])))):
        text = f"{found[1]}{near}"
    return f"{type(error).__name__}: {text}"


def _elsewhere(name: str, beside: str) -> str:
    """Return where a module lies of which a mere folder was imported; empty if it was the module."""
    imported = sys.modules.get(name)
    return "" if imported is None or imported.__file__ else where_it_lies(name, beside)


def _not_there(missing: str, beside: str) -> str:
    """Return why a module that another one imports is not there, and how to get it."""
    if near := _near(missing) or where_it_lies(missing, beside):
        return f"there is no Python module {missing!r}{near}"
    return f"{how_to_get(missing)}{_or_own(missing)}"


def _not_generated(name: str) -> str:
    """Return the message that a folder has definitions of messages but no code made from them; empty if it is not
    so."""
    for entry in sys.path:
        folder = Path(entry or ".", *name.split("."))
        bare = sorted(path.name for path in folder.glob("*.lcm") if not path.with_suffix(".py").exists())
        if name and bare:
            return (
                f"{str(folder)!r} has message definitions ({', '.join(bare)}) but no classes: "
                f"run {generate_command(folder.parent)}"
            )
    return ""


def generate_command(folder: Path, package: str = "") -> str:
    """Return the command that makes classes of the definitions of messages in a folder, as a shell takes it."""
    named = f" --package {shlex.quote(package)}" if package else ""
    return f"`dimos-streams messages generate {shlex.quote(str(folder))}{named}`"


def _or_own(missing: str) -> str:
    """Return where a file of somebody's own is looked for, if a missing package may be one; empty if it is known."""
    if missing.partition(".")[0] in EXTRAS:
        return ""
    return "; or is it a file of yours? Those are found in the working directory and on PYTHONPATH"


def _near(missing: str) -> str:
    """The suggestion of a module that is called nearly so, in the same package."""
    package, dot, last = missing.rpartition(".")
    return suggest(last, _beside(missing), before=package + dot)


def _beside(name: str) -> list[str]:
    """The names of the modules in the package that ``name`` would be in."""
    try:
        return [info.name for info in pkgutil.iter_modules(_path_of(name.rpartition(".")[0]))]
    except Exception:  # somebody's package or finder may raise anything, and this is only for a suggestion
        return []


def _path_of(package: str) -> Iterable[str]:
    """The folders of a package. It is not imported: what is missing may have ended its import already."""
    if package in sys.modules:
        return getattr(sys.modules[package], "__path__", [])
    if not package or "." in package:  # to look for one within another imports that one
        return []
    spec = importlib.util.find_spec(package)
    return (spec and spec.submodule_search_locations) or []


def how_to_get(package: str) -> str:
    """Return the message that a Python package is not installed, and what installs it."""
    root = package.partition(".")[0]
    extra = EXTRAS.get(root)
    limit = f" (it comes ready-made for {_BUILT_FOR[root]} only)" if root in _BUILT_FOR else ""
    wanted = f"'dimos-streams[{extra}]'" if extra else repr(package)
    return f"{package!r} is not installed: pip install {wanted}{limit}"
