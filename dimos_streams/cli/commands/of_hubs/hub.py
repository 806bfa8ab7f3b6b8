"""The fleet hub: serving, and the version of its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dimos_streams.cli.commands.of_hubs import robots
from dimos_streams.cli.commands.of_hubs.database import Database, storage_of
from dimos_streams.cli.option_groups.bridge_choice import environment_token, token_option
from dimos_streams.cli.terminal import options
from dimos_streams.cli.terminal.output import write
from dimos_streams.hub.settings import HubSettings

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
    app.callback()(serve)
    app.command("migrate")(migrate)
    app.add_typer(robots.create_app(), name="robots")
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

    storage = storage_of(database)
    try:
        version = storage.open(migrate=True)
    finally:
        storage.close()
    write(f"schema {SCHEMA}" + (", as before" if version == SCHEMA else f", was {version}" if version else ", new"))


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
