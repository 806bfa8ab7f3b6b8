"""The places of new files: a whole package, a module of the package that is there, or files that stand alone."""

from __future__ import annotations

import re
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from dimos_streams import __version__
from dimos_streams.cli.scaffold.names import (
    check_blueprint,
    check_form,
    check_import,
    check_use,
    class_name,
)
from dimos_streams.cli.scaffold.templates import render
from dimos_streams.common.process.disk import real_path
from dimos_streams.documents.document import display_path
from dimos_streams.errors import UserError

_LIBRARY = "dimos_streams"
FIRST_SKILL = "greet"
"""The skill that a new package begins with."""


@dataclass(frozen=True, slots=True)
class NewFiles:
    """The files to be made, by their place."""

    files: dict[Path, str]
    next_steps: tuple[str, ...]
    """The commands that a reader would give now."""


def new_package(name: str, folder: Path) -> NewFiles:
    """Return a whole package ``folder/name``. Raises ``UserError`` for a name that it can't have, and where it would
    be among the code of another one."""
    check_form("package", name)
    _refuse_inside(folder, name)
    check_import("package", name, folder)
    check_blueprint("package", name)
    root = folder / name
    version = ".".join(__version__.split(".")[:2]) + ".0"
    texts = render("package", {"package": name, "version": version})
    texts |= _in_package("skill", FIRST_SKILL, package=name, inside=name, blueprint=f"{name}.yaml")
    del texts[PurePosixPath(name, f"{FIRST_SKILL}.yaml")]
    steps = (*_into(root), "pip install --editable '.[test]'", "pytest", f"dimos-streams check {name}")
    return NewFiles({root / path: text for path, text in texts.items()}, steps)


def _refuse_inside(folder: Path, name: str) -> None:
    """Raise ``UserError`` if a package of a name in a folder would be among the code of the project that is there."""
    project = find_project(folder)
    if project is not None and real_path(folder / name).is_relative_to(project.root / project.inside):
        here = "you are" if real_path(folder) == Path.cwd() else f"{display_path(folder)!r} is"
        text = f"{here} inside the package {project.package}"
        add = "" if project.package == _LIBRARY else "`new skill` and `new robot` add to it, and "
        raise UserError(f"{text}: {add}--dir names another place for a package")


def new_module(kind: str, name: str, folder: Path) -> NewFiles:
    """Return a ``skill`` or a ``robot``: a module, its blueprint and its test. They go into the package whose project
    ``folder`` is in, or else into the folder itself, as in a checkout of this library. A skill's blueprint includes
    the package's own. Raises ``UserError`` for a name that they can't have."""
    check_form(kind, name)
    project = find_project(folder)
    if project is not None and project.package == _LIBRARY:
        project = None
    base = _STOCK if project is None or kind != "skill" else project.base
    check_use(kind, name, base.reference, base.called)
    if project is None:
        check_import(kind, name, folder)
        texts = _alone(kind, name)
        return NewFiles(
            {folder / path: text for path, text in texts.items()},
            (*_into(folder), f"pytest test_{name}.py", f"dimos-streams check {name}.yaml"),
        )
    inside = project.inside.as_posix()
    texts = _in_package(kind, name, package=project.package, inside=inside, blueprint=f"{name}.yaml", base=base)
    steps = (*_into(project.root), f"pytest tests/test_{name}.py", f"dimos-streams check {inside}/{name}.yaml")
    return NewFiles({project.root / path: text for path, text in texts.items()}, steps)


@dataclass(frozen=True, slots=True)
class IncludedRobot:
    """The blueprint that a new one includes."""

    include: str
    """Its name as the new blueprint writes it, which stands beside it."""
    called: str
    """What people call the robot that it is."""
    reference: str
    """Its name as commands take it."""


_STOCK = IncludedRobot("follow-person", "the stock robot", "follow-person")


@dataclass(frozen=True, slots=True)
class Project:
    """A directory with a pyproject.toml and the package that this names."""

    root: Path
    package: str
    inside: PurePosixPath
    """The package's directory, relative to the root."""

    @property
    def base(self) -> IncludedRobot:
        """The package's own blueprint, where ``new package`` puts it; the stock robot if there is none."""
        own = self.root / self.inside / f"{self.package}.yaml"
        return IncludedRobot(own.name, f"the robot of {self.package}", str(own)) if own.is_file() else _STOCK


def find_project(folder: Path) -> Project | None:
    """Return the project that a directory is in; None if there is no pyproject.toml, or its package is not beside it.

    Raises ``UserError`` for a pyproject.toml that can't be read.
    """
    start = real_path(folder)
    for root in (start, *start.parents):
        path = root / "pyproject.toml"
        if path.is_file():
            package = _package_of(path)
            places = (PurePosixPath(package), PurePosixPath("src", package)) if package else ()
            return next((Project(root, package, at) for at in places if (root / at / "__init__.py").is_file()), None)
    return None


def _package_of(path: Path) -> str:
    """Return the package that a project's name stands for; empty for none, and for one that would be a path."""
    try:
        project = tomllib.loads(path.read_text("utf-8")).get("project", {})
    except (OSError, ValueError) as error:
        raise UserError(f"{path} can't be read: {error}") from error
    name = project.get("name", "") if isinstance(project, dict) else ""
    package = re.sub(r"[-.]+", "_", str(name)).lower()
    return package if package.isidentifier() else ""


def _in_package(
    kind: str, name: str, *, package: str, inside: str, blueprint: str, base: IncludedRobot = _STOCK
) -> dict[PurePosixPath, str]:
    """Return the texts of a module's files, by path relative to the project."""
    values = {
        "module": f"{package}.{name}",
        "path": f"{inside}/{blueprint}",
        "blueprint": f"../{inside}/{blueprint}",
    }
    texts = _module(kind, name, base, values)
    return {
        PurePosixPath("tests" if path.name.startswith("test_") else inside, path): text
        for path, text in texts.items()
    }


def _alone(kind: str, name: str) -> dict[PurePosixPath, str]:
    return _module(kind, name, _STOCK, {"module": name, "path": f"{name}.yaml", "blueprint": f"{name}.yaml"})


def _module(kind: str, name: str, base: IncludedRobot, values: dict[str, str]) -> dict[PurePosixPath, str]:
    called = f"{base.called[0].upper()}{base.called[1:]}"
    return render(kind, {"name": name, "Class": class_name(name), "include": base.include, "Robot": called, **values})


def _into(folder: Path) -> tuple[str, ...]:
    return () if real_path(folder) == Path.cwd() else (f"cd {shlex.quote(display_path(folder))}",)
