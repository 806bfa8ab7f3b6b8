"""Names that a package, a module or a skill can have, so that what is made of one works."""

from __future__ import annotations

import contextlib
import importlib.util
import keyword
import re
import sys
from pathlib import Path

from dimos_streams.cli.scaffold.templates import identifiers
from dimos_streams.common.names import MODULE_NAME
from dimos_streams.common.process.disk import real_path
from dimos_streams.errors import UserError

MAX_LENGTH = 24
"""Maximum length of a name, in characters; longer ones break the lines of what is made."""


def class_name(name: str) -> str:
    """Return the name of a class: ``"WaveTwice"`` for ``"wave_twice"``."""
    return "".join(part.capitalize() for part in name.split("_"))


def check_form(kind: str, name: str) -> None:
    """Raise ``UserError``, with a name that would do, for a name that is none of a Python module in lower case."""
    if not MODULE_NAME.fullmatch(name) or len(name) > MAX_LENGTH:
        near = _nearest(name)
        proposal = f"; {near!r} would do" if near else ""
        raise UserError(
            f"a {kind} can't be called {name!r}: a name has small letters, digits and single underscores, begins with"
            f" a letter and has at most {MAX_LENGTH} characters{proposal}"
        )
    if keyword.iskeyword(name):
        raise _name_error(kind, name, "that is a word of Python's")


def check_import(kind: str, name: str, folder: Path) -> None:
    """Raise ``UserError`` if Python imports something else by this name. ``folder`` is where it is to be: what is
    there does not count."""
    why = ""
    if name in sys.stdlib_module_names:
        why = "Python has a module of this name"
    elif name in ("tests", "conftest"):
        why = "tests have this name"
    elif (there := _installed(name, folder)) is not None:
        why = f"{there} is imported by this name"
    if why:
        raise _name_error(kind, name, why)


def check_blueprint(kind: str, name: str) -> None:
    """Raise ``UserError`` if a stock blueprint has the name."""
    from dimos_streams.blueprint.stock import find_stock, stock_blueprints

    # Those that packages register may be the one that is made anew.
    if name in stock_blueprints() and isinstance(find_stock(name).target, Path):
        raise _name_error(kind, name, "a stock blueprint has this name")


def check_use(kind: str, name: str, beside: str, called: str) -> None:
    """Raise ``UserError`` if a skill or robot of this name would be in the way of the modules and skills of the
    blueprint ``beside`` it, a reference that people know as ``called``, or of what its own class has or uses."""
    from dimos_streams.blueprint.classes import module_class
    from dimos_streams.blueprint.load import resolve
    from dimos_streams.module import Module
    from dimos_streams.skill import skills_of

    modules = resolve(beside).modules
    taken = {spec.name: f"module {spec.name!r}" for spec in modules.values()}
    for spec in modules.values():
        with contextlib.suppress(UserError):  # a package that is not on Python's path from here, or does not work yet
            skills = skills_of(module_class(spec))
            taken |= {skill: f"skill {skill!r} of module {spec.name!r}" for skill in skills}
    own = identifiers(kind) | set(dir(Module))
    why = ""
    if name in taken or f"go_and_{name}" in taken:
        why = f"{called} has the {taken.get(name) or taken[f'go_and_{name}']}"
    elif name in own:
        why = f"modules have or use {name!r} themselves"
    elif class_name(name) in own:
        why = f"its class would be {class_name(name)!r}, which modules use themselves"
    if why:
        raise _name_error(kind, name, why)


def _nearest(name: str) -> str:
    """Return a form of a name that would do; empty if nothing of it is left."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    near = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_0123456789")[:MAX_LENGTH].rstrip("_")
    return "" if keyword.iskeyword(near) else near


def _name_error(kind: str, name: str, why: str) -> UserError:
    other = f"my_{name}"[:MAX_LENGTH].rstrip("_")
    return UserError(f"a {kind} can't be called {name!r}: {why}; {other!r} would do")


def _installed(name: str, folder: Path) -> str | None:
    """Return where Python finds a module of a name; None if it does not, or finds it in the folder."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):  # half of something is there
        return None
    if spec is None or spec.origin is None:  # nothing, or a folder without code
        return None
    at = Path(spec.origin)
    in_environment = at.is_relative_to(sys.prefix)  # which may lie in the folder, as `.venv` does
    return None if at.is_relative_to(real_path(folder)) and not in_environment else str(at)
