"""Message types: generate their classes, list and show them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dimos_streams.cli.exit_codes import FAILED
from dimos_streams.cli.terminal import options
from dimos_streams.cli.terminal.output import note, write, write_json, write_table
from dimos_streams.common.importing import generate_command
from dimos_streams.common.readable.plural import plural
from dimos_streams.errors import UserError, cannot_write

if TYPE_CHECKING:
    from dimos_streams.messages.base import Message


def create_app() -> typer.Typer:
    """Return the commands under ``messages``."""
    app = typer.Typer(help="The message types of this package and your own.", no_args_is_help=True)
    app.command("generate")(generate)
    app.command("java")(java)
    app.command("list")(list_types)
    app.command("show")(show)
    return app


def generate(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="The folder with PACKAGE/Name.lcm files. The classes are written beside them."
        ),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 if anything would change.")
    ] = False,
    package: Annotated[
        str,
        typer.Option(
            "--package",
            help="The Python package that DIR is, as in weather.messages, if it can't be told from its place.",
        ),
    ] = "",
) -> None:
    """Make Python classes and their stubs from .lcm files of your own."""
    from dimos_streams.messages.generate import differences, generate_own, outcome, update

    expected = generate_own(folder, package)
    differing = differences(expected, folder, shared=True)
    if not check:
        update(expected, differing, folder)
    for path, what in differing.items():
        write(f"{what if check else outcome(what)}: {folder / path}")
    types = sum(path.suffix == ".pyi" for path in expected)
    if check and differing:
        note(f"{plural(len(differing), 'file')} not fresh: run {generate_command(folder, package)}")
        raise typer.Exit(FAILED)
    write(f"{folder}: {plural(types, 'message type')}, {'fresh' if check or not differing else 'made'}")


def java(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder into which the classes are written.")],
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="[DIR]...", help="Folders with PACKAGE/Name.lcm files of your own.")
    ] = None,
) -> None:
    """Write Java classes of the stock message types, and of your own: lcm-spy reads messages with them."""
    from dimos_streams.messages.generation.java import java_classes, lcm_jar, write_java

    classes = java_classes(folders or ())
    try:
        write_java(classes, out)
    except OSError as error:
        raise cannot_write(str(error.filename or out), error) from error
    write(f"{out}: Java classes of {plural(len(classes), 'message type')}")
    folder, jar = shlex.quote(str(out)), shlex.quote(str(lcm_jar()))
    note(f"compile them: find {folder} -name '*.java' -exec javac -cp {jar} -d classes {{}} +")


def list_types(as_json: options.Json = False) -> None:
    """List the message types that are known by name, and where they are from."""
    from dimos_streams.messages import registry
    from dimos_streams.messages.codec import type_named

    rows = [(name, type_named(name)) for name in registry.type_names()]
    problems = registry.installed().problems
    if as_json:
        types = [{"name": name, "fingerprint": _fingerprint(cls), "class": _path(cls)} for name, cls in rows]
        write_json({"types": types, "problems": problems}, indent=2)
        return
    write_table(("TYPE", "FINGERPRINT", "CLASS"), [(name, _fingerprint(cls), _path(cls)) for name, cls in rows])
    for problem in problems:
        note(problem)


def show(
    name: Annotated[
        str, typer.Argument(metavar="TYPE", help="The name of a message type, as in geometry_msgs.Twist.")
    ],
    as_json: options.Json = False,
) -> None:
    """Show the fields of a message type."""
    from dimos_streams.messages import registry
    from dimos_streams.messages.base import fields_of

    cls = registry.find(name)
    if cls is None:
        raise UserError(f"there is no message type {name!r}{registry.hint(name)}")
    fields = fields_of(cls)
    if as_json:
        rows = [{"name": field.name, "type": field.type, "size": field.size} for field in fields]
        write_json({"name": name, "fingerprint": _fingerprint(cls), "class": _path(cls), "fields": rows}, indent=2)
        return
    write(f"{name}  {_fingerprint(cls)}  {_path(cls)}")
    for field in fields:
        write(f"  {field.type} {field.name}" + (f"[{field.size}]" if field.size is not None else ""))


def _fingerprint(cls: type[Message]) -> str:
    return cls._get_packed_fingerprint().hex()


def _path(cls: type[Message]) -> str:
    """Return the class's import path, as in ``"package.messages.package_msgs.Class"``."""
    return cls.__module__
