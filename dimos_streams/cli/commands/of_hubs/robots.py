"""The robots of a hub: which may connect, with which token."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from dimos_streams.cli.commands.of_hubs.database import Database, open_storage
from dimos_streams.cli.terminal import options
from dimos_streams.cli.terminal.output import write, write_json
from dimos_streams.hub.settings import HubSettings

_Name = Annotated[str, typer.Argument(metavar="NAME", help="The robot's name: letters, digits, - and _.")]
_DATABASE = HubSettings().database


def create_app() -> typer.Typer:
    """Return the group's commands."""
    app = typer.Typer(help="The robots that may connect.", no_args_is_help=True)
    app.command("add")(add)
    app.command("remove")(remove)
    app.command("list")(list_robots)
    return app


def add(
    name: _Name,
    database: Database = _DATABASE,
    new_token: Annotated[
        bool,
        typer.Option(
            "--new-token",
            help="Give a robot that is known already another token; its old one is refused from then on.",
        ),
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--write",
            metavar="FILE",
            help="Write the token into a new file that only its owner can read, and print nothing.",
        ),
    ] = None,
) -> None:
    """Let a robot connect. Prints its token, of which the hub keeps no copy."""
    import re

    from dimos_streams.errors import UserError
    from dimos_streams.fleet.protocol import ROBOT_NAME
    from dimos_streams.hub.storage.robots import new_token as made_token

    if re.fullmatch(ROBOT_NAME, name) is None:
        raise UserError(
            f"{name!r} is no name for a robot; valid: up to 63 letters, digits, - and _, a letter or digit first"
        )
    token = made_token()
    storage = open_storage(database)
    try:
        with _write_token(token_file, token) if token_file else contextlib.nullcontext():
            storage.robots.add(name, token, again=new_token, hand_over=None if token_file else write)
    finally:
        storage.close()


def remove(name: _Name, database: Database = _DATABASE) -> None:
    """Let a robot connect no more. Its events stay."""
    storage = open_storage(database, make=False)
    try:
        storage.robots.remove(name)
    finally:
        storage.close()


def list_robots(database: Database = _DATABASE, as_json: options.Json = False) -> None:
    """Show the robots that may connect, with their state."""
    from dimos_streams.hub.fleet_view import FleetRobot

    storage = open_storage(database, make=False)
    try:
        now = storage.now()
        views = [FleetRobot(row).view(now) for row in storage.robots.all()]
    finally:
        storage.close()
    if as_json:
        write_json([view.model_dump(mode="json") for view in views], indent=2)
        return
    for view in views:
        heard = "never heard of" if view.heard_s is None else f"heard of {view.heard_s:.0f} s ago"
        link = "connected" if view.connected else heard
        write(f"{view.name}  {link}  {view.status}  {'; '.join(view.notes)}".rstrip())


@contextlib.contextmanager
def _write_token(path: Path, token: str) -> Iterator[None]:
    """Have a token in a new file before it counts: an old one must not end for one that nobody has. The file is gone
    again if what follows fails. Raises ``UserError``."""
    import os

    from dimos_streams.errors import UserError

    with contextlib.ExitStack() as undo:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            undo.callback(path.unlink, missing_ok=True)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(f"{token}\n")
        except OSError as error:
            raise UserError(
                f"--write {path}: the token can't be written there: {error.strerror}; valid: a new file, in a"
                " directory that is there. Nothing has changed at the hub"
            ) from error
        yield
        undo.pop_all()
