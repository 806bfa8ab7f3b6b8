"""``new``: a package, or a module with its blueprint and its test."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dimos_streams.cli.terminal.output import note_lines, write

if TYPE_CHECKING:
    from dimos_streams.cli.scaffold.place import NewFiles

_Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Small letters, digits and underscores, as in 'wave_twice'.")
]
_Folder = Annotated[
    Path,
    typer.Option("--dir", metavar="DIR", help="An existing directory in which it is made.", file_okay=False),
]
_Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files, and name each.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only list the files; write nothing.")]


def create_app() -> typer.Typer:
    """Return the commands under ``new``."""
    app = typer.Typer(help="Make a package, or a module with its blueprint and test.", no_args_is_help=True)
    app.command("package")(package)
    app.command("skill")(skill)
    app.command("robot")(robot)
    return app


def package(name: _Name, folder: _Folder = Path(), force: _Force = False, dry_run: _DryRun = False) -> None:
    """Make an installable package: skills, a room, a blueprint, tests, CI, and rules for coding agents."""
    from dimos_streams.cli.scaffold.place import new_package

    _make(new_package(name, _there(folder)), force=force, dry_run=dry_run)


def skill(name: _Name, folder: _Folder = Path(), force: _Force = False, dry_run: _DryRun = False) -> None:
    """Make a module with skills, its blueprint and its test: in the package that DIR is in, or else in DIR itself."""
    from dimos_streams.cli.scaffold.place import new_module

    _make(new_module("skill", name, _there(folder)), force=force, dry_run=dry_run)


def robot(name: _Name, folder: _Folder = Path(), force: _Force = False, dry_run: _DryRun = False) -> None:
    """Make a module that is a robot, its blueprint and its test, in the same places as `new skill`."""
    from dimos_streams.cli.scaffold.place import new_module

    _make(new_module("robot", name, _there(folder)), force=force, dry_run=dry_run)


def _there(folder: Path) -> Path:
    from dimos_streams.errors import UserError

    if not folder.is_dir():
        raise UserError(f"--dir {folder}: there is no such directory")
    return folder


def _make(new: NewFiles, *, force: bool, dry_run: bool) -> None:
    from dimos_streams.cli.scaffold.write import check_writable, existing, write_all
    from dimos_streams.documents.document import display_path

    check_writable(new.files, force=force)
    over = existing(new.files)
    if not dry_run:
        write_all(new.files)
    for path in new.files:
        verb = "overwrite" if path in over else "write"
        done = f"would {verb}" if dry_run else verb.replace("write", "written")
        write(f"{done}: {display_path(path)}")
    if not dry_run:
        note_lines("\n".join(("next:", *(f"  {step}" for step in new.next_steps))))
