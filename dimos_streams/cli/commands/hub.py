"""The fleet hub: serving, its robots, its tables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dimos_streams.cli.option_groups.bridge_choice import environment_token, token_option
from dimos_streams.cli.terminal import options
from dimos_streams.cli.terminal.output import write, write_json
from dimos_streams.hub.settings import HubSettings

if TYPE_CHECKING:
    from dimos_streams.hub.storage.storage import HubStorage

Database = Annotated[
    str,
    typer.Option(
        "--database",
        envvar="DIMOS_STREAMS_DATABASE",
        callback=options.typed_url,
        metavar="URL",
        help="The database: sqlite:///FILE for a single hub, postgresql://USER@HOST/NAME for one or several.",
    ),
]
RobotArgument = Annotated[str, typer.Argument(metavar="NAME", help="The robot's name: letters, digits, - and _.")]
_Connections = Annotated[
    int,
    typer.Option(
        "--connections",
        min=16,
        max=100_000,
        help="The largest number of connections at a time. Each robot has three.",
    ),
]
_KeepDays = Annotated[
    float,
    typer.Option(
        "--keep-days",
        min=0.001,
        help="Drop events that are older than this number of days, a partition at a time.",
    ),
]
_KeepEvents = Annotated[
    int,
    typer.Option(
        "--keep-events",
        min=1,
        help="Keep at most this number of events, the newest; older ones are dropped, a partition of a million"
        " at a time.",
    ),
]
_KeepMb = Annotated[
    int,
    typer.Option(
        "--keep-mb",
        metavar="MB",
        min=50,
        max=1_000_000_000,
        help="Let the database take at most this number of megabytes; the oldest events are dropped before it does.",
    ),
]
_DEFAULTS = HubSettings()


def create_app() -> typer.Typer:
    """Return the group's commands; alone it serves."""
    app = typer.Typer(
        help="Serve the runs of many robots at one place, until Ctrl-C; or look after the hub's database.",
        invoke_without_command=True,
    )
    robots = typer.Typer(help="The robots that may connect.", no_args_is_help=True)
    app.callback()(serve)
    app.command("migrate")(migrate)
    robots.command("add")(add)
    robots.command("remove")(remove)
    robots.command("list")(list_robots)
    app.add_typer(robots, name="robots")
    return app


def serve(
    context: typer.Context,
    database: Database = _DEFAULTS.database,
    host: Annotated[
        str, typer.Option("--host", help="The address to listen on. Any that other machines reach needs a token.")
    ] = _DEFAULTS.host,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port to listen on; 0 stands for any free one.")
    ] = _DEFAULTS.port,
    token: Annotated[str | None, token_option("The operators' token, which the hub requires of clients.")] = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", metavar="FILE", help="A file with the operators' token.")
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-host",
            metavar="NAME",
            help="A further name under which robots and clients reach the hub. May be given several times.",
        ),
    ] = None,
    connections: _Connections = _DEFAULTS.connections,
    keep_days: _KeepDays = _DEFAULTS.retention.days,
    keep_events: _KeepEvents = _DEFAULTS.retention.events,
    keep_mb: _KeepMb = _DEFAULTS.retention.megabytes,
) -> None:
    """Serve the runs of many robots at one place, until Ctrl-C; or look after the hub's database."""
    if context.invoked_subcommand is not None:
        _check_place(context)
        return
    from dimos_streams.cli.system.async_runner import run_async
    from dimos_streams.hub.storage.rows import Retention

    settings = HubSettings(
        database=database,
        host=host,
        port=port,
        token=_token(context, token, token_file),
        allowed_hosts=tuple(allowed_host or ()),
        connections=connections,
        retention=Retention(days=keep_days, events=keep_events, megabytes=keep_mb),
    )
    _allow_files(connections)
    run_async(_serve(settings))


def migrate(database: Database = _DEFAULTS.database) -> None:
    """Bring the tables of an older version up to this one's. No hub may use the database meanwhile."""
    from dimos_streams.hub.storage.schema import SCHEMA

    storage = _storage(database)
    try:
        version = storage.open(migrate=True)
    finally:
        storage.close()
    write(f"schema {SCHEMA}" + (", as before" if version == SCHEMA else f", was {version}" if version else ", new"))


def add(
    name: RobotArgument,
    database: Database = _DEFAULTS.database,
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
    storage = _open_storage(database)
    try:
        with _write_token(token_file, token) if token_file else contextlib.nullcontext():
            storage.robots.add(name, token, again=new_token, hand_over=None if token_file else write)
    finally:
        storage.close()


def remove(name: RobotArgument, database: Database = _DEFAULTS.database) -> None:
    """Let a robot connect no more. Its events stay."""
    storage = _open_storage(database, make=False)
    try:
        storage.robots.remove(name)
    finally:
        storage.close()


def list_robots(database: Database = _DEFAULTS.database, as_json: options.Json = False) -> None:
    """Show the robots that may connect, with their state."""
    from dimos_streams.hub.fleet_view import FleetRobot

    storage = _open_storage(database, make=False)
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


async def _serve(settings: HubSettings) -> None:
    from dimos_streams.cli.system.async_runner import finish
    from dimos_streams.common.process.collector import keep_all_that_is_there
    from dimos_streams.hub.process import FleetHub

    _show_times()
    hub = FleetHub(settings)
    await hub.start()
    keep_all_that_is_there()
    try:
        from dimos_streams.hub.storage.engines.urls import shown

        write(f"serving on {hub.url}, from {shown(settings.database)}")
        await hub.wait()
    finally:
        await finish(hub.stop())


def _show_times() -> None:
    """Put the time before what a hub warns of: its log is read when something has failed."""
    import logging

    from dimos_streams.common.printable import LogFormatter

    if logging.lastResort is not None:
        logging.lastResort.setFormatter(LogFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))


def _check_place(context: typer.Context) -> None:
    """Raise ``UserError`` for options that stand before a command, which would not get them."""
    from dimos_streams.errors import UserError

    for option in options.given_on_command_line(context).values():
        raise UserError(
            f"{option} is before `{context.invoked_subcommand}`, which would not heed it; what a command"
            f" takes stands behind it: dimos-streams hub {context.invoked_subcommand} … {option} …"
        )


def _token(context: typer.Context, given: str | None, file: Path | None) -> str | None:
    """Return the operators' token: that of the command line or of a file, else of the environment. Raises
    ``UserError``."""
    from dimos_streams.common.http.bearer import token_in
    from dimos_streams.errors import UserError

    if file is None:
        return given or environment_token()
    if "token" in options.given_on_command_line(context):
        raise UserError(
            f"--token is the operators' token, and so is what is in --token-file {file}; give one of them"
        )
    try:
        return token_in(file, or_pipe=True)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--token-file {file}: {getattr(error, 'strerror', None) or error}") from error


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


def _allow_files(connections: int) -> None:
    """Have room for the descriptors of so many connections. Raises ``UserError`` if the machine does not give it."""
    import resource

    from dimos_streams.errors import UserError

    needed = connections + 256
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= needed or soft == resource.RLIM_INFINITY:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise UserError(f"--connections {connections} needs {needed} open files, this process may have {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _storage(url: str) -> HubStorage:
    from dimos_streams.hub.storage.storage import HubStorage, open_engine

    return HubStorage(open_engine(url))


def _open_storage(url: str, *, make: bool = True) -> HubStorage:
    """Return an open database; without ``make`` one that is there. Raises ``UserError``."""
    storage = _storage(url)
    try:
        if not make:
            storage.engine.check_there()
        storage.open()
    except BaseException:
        storage.close()
        raise
    return storage
