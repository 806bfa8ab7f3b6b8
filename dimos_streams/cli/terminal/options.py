"""Arguments and options that several commands share."""

from __future__ import annotations

import os
import shlex
from typing import Annotated

import typer

from dimos_streams.cli.system import completion
from dimos_streams.cli.terminal.output import note
from dimos_streams.common.secrets import checked, know
from dimos_streams.errors import UserError

Blueprint = Annotated[
    str,
    typer.Argument(
        metavar="BLUEPRINT",
        help="A stock name (see `list`), a YAML file, or a Python `module:attribute`.",
        autocompletion=completion.blueprints,
        show_default=False,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="MODULE.FIELD=VALUE",
        help="Set a field of a module's config; the value is YAML. May be given several times.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object a line for scripts.")]
Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="Where the bridge is. Without it: the newest living run's, or else port 7780 of this machine.",
        show_default=False,
    ),
]
Port = Annotated[
    int | None,
    typer.Option("--port", min=1, max=65535, help="The bridge's port on this machine.", show_default=False),
]
_TOKEN_VARIABLE = "DIMOS_STREAMS_TOKEN"


def environment_token() -> str | None:
    """Return the token that the environment has, or None; it is looked for in texts from now on. Raises ``UserError``
    for one that can't be sent, also for an empty one: whoever set it thinks that there is a token."""
    given = os.environ.get(_TOKEN_VARIABLE)
    return None if given is None else _known_token(given, _TOKEN_VARIABLE)


def _known_token(token: str, where: str) -> str:
    know(checked(token, where), where="the token")
    return token


def _checked_token(context: typer.Context, value: str | None) -> str | None:
    """Return the token of the command line, or else of the environment."""
    return _typed_token(context, value) or environment_token()


def _typed_token(context: typer.Context, value: str | None) -> str | None:
    """Return the token of the command line, which every user can see."""
    if value is None or "token" not in given_on_command_line(context):
        return None
    _known_token(value, "--token")
    note(f"--token shows the token in the list of processes, to every user; {_TOKEN_VARIABLE} does not")
    return value


_TOKEN_HELP = "What the bridge asks of every request. Better given as the variable: arguments are no secret."
Token = Annotated[
    str | None,
    typer.Option("--token", envvar=_TOKEN_VARIABLE, callback=_checked_token, help=_TOKEN_HELP, show_default=False),
]
TypedToken = Annotated[
    str | None,
    typer.Option("--token", callback=_typed_token, help=_TOKEN_HELP, show_default=False),
]
"""The token for commands that seldom ask a bridge: that of the environment they read if they do."""
BusUrl = Annotated[
    str | None,
    typer.Option(
        "--bus",
        metavar="URL",
        help="The bus: udpm://… (LCM) or zenoh://…. Without it: the newest living run's, DIMOS_STREAMS_BUS,"
        " LCM_DEFAULT_URL, or LCM's usual group.",
        show_default=False,
    ),
]
RunArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[RUN]",
        help="A run's id, blueprint or process id. Without it: the newest.",
        autocompletion=completion.living_runs,
        show_default=False,
    ),
]
RunOption = Annotated[
    str | None,
    typer.Option(
        "--run",
        metavar="RUN",
        help="A run's id, blueprint or process id. Without it: the newest.",
        autocompletion=completion.living_runs,
        show_default=False,
    ),
]
_ONLY = "Only this one: a run's id, blueprint or process id."
OnlyRunArgument = Annotated[
    str | None,
    typer.Argument(metavar="[RUN]", help=_ONLY, autocompletion=completion.living_runs, show_default=False),
]
OnlyRunOption = Annotated[
    str | None,
    typer.Option("--run", metavar="RUN", help=_ONLY, autocompletion=completion.living_runs, show_default=False),
]
_KEPT = "A run's id or blueprint, also of one that has ended. Without it: the newest, a living one first."
KeptRunArgument = Annotated[
    str | None,
    typer.Argument(metavar="[RUN]", help=_KEPT, autocompletion=completion.kept_runs, show_default=False),
]
KeptRunOption = Annotated[
    str | None,
    typer.Option("--run", metavar="RUN", help=_KEPT, autocompletion=completion.kept_runs, show_default=False),
]
Machine = Annotated[
    str | None,
    typer.Option(
        "--machine",
        metavar="NAME",
        help="The part of a run on another machine, reached through the bridge.",
        show_default=False,
    ),
]
AgentName = Annotated[
    str,
    typer.Option(
        "--agent",
        metavar="NAME",
        help="Which agent (its module, its namespace or its `say` skill), if there are several. At a fleet's hub: its"
        " robot.",
        show_default=False,
    ),
]
FleetRobot = Annotated[
    str | None,
    typer.Option(
        "--robot",
        metavar="NAME",
        help="At a fleet's hub: the robot that is meant, if there are several.",
        show_default=False,
    ),
]


def named_run(argument: str | None, option: str | None) -> str | None:
    """Return the run that a command names, which may stand behind ``--run``, as for all others, or without it. Raises
    ``UserError`` if both are given."""
    if argument is not None and option is not None:
        raise UserError(f"--run {option!r} and RUN {argument!r} both name a run; give one of them")
    return option if argument is None else argument


def bridge_named(run: str | None, url: str | None, port: int | None) -> str:
    """The options, as typed behind a command, that name the bridge that ``run``, ``url`` and ``port`` do."""
    given = {"--run": run, "--url": url, "--port": None if port is None else str(port)}
    return "".join(f" {option} {shlex.quote(value)}" for option, value in given.items() if value is not None)


def checked_seed(value: int | None) -> int | None:
    """Return a given seed. Raises ``UserError`` for a negative one."""
    if value is not None and value < 0:
        raise UserError(f"--seed {value}: it must be at least 0")
    return value


def given_on_command_line(context: typer.Context) -> dict[str, str]:
    """The options that the command line has, whatever their values: how each is spelled, by its parameter's name."""
    found = {}
    for option in context.command.params:
        source = context.get_parameter_source(option.name) if option.name else None
        if source is not None and source.name == "COMMANDLINE" and option.param_type_name == "option":
            found[str(option.name)] = option.opts[0]
    return found


def asks_bridge_named(url: str | None, port: int | None, token: str | None, *, is_asked: bool, by: str) -> bool:
    """Return whether options name a bridge to a command that asks one only ``by`` other options. Raises
    ``UserError`` if it asks none."""
    if not is_asked and (url, port, token) != (None, None, None):
        raise UserError(f"--url, --port and --token are of the bridge that {by} asks; without it none is asked")
    return (url, port) != (None, None)
