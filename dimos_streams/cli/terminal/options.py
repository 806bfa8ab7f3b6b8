"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from dimos_streams.cli.system import completion
from dimos_streams.cli.terminal.output import note, sole_output
from dimos_streams.common.secrets import redacted
from dimos_streams.errors import UserError

Blueprint = Annotated[
    str,
    typer.Argument(
        metavar="BLUEPRINT",
        help="A stock name (see `list`), a YAML file, or a Python `module:attribute`.",
        autocompletion=completion.blueprints,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="MODULE.FIELD=VALUE",
        help="Set a field of a module's config; the value is YAML. May be given several times.",
    ),
]


def _alone_on_output(context: typer.Context, value: bool) -> bool:
    """Have the JSON of a command alone on standard output."""
    if value and not context.resilient_parsing:
        context.with_resource(sole_output())
    return value


Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.", callback=_alone_on_output)]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object a line for scripts.")]
_PASSWORD = "password="
"""How the query of a database's URL names a password."""
_VARIABLES = {"bus": "DIMOS_STREAMS_BUS", "database": "DIMOS_STREAMS_DATABASE"}
"""The variables that may be set instead of an option."""


def typed_url(context: typer.Context, option: typer.CallbackParam, value: str | None) -> str | None:
    """Return a given URL, and say so if the command line shows a secret in it."""
    spelled = given_on_command_line(context).get(str(option.name))
    if value is not None and spelled is not None and (redacted(value) != value or _PASSWORD in value):
        variable = _VARIABLES.get(str(option.name))
        instead = f"; {variable} does not" if variable else ""
        note(f"{spelled} shows a secret in the list of processes, to every user{instead}")
    return value


BusUrl = Annotated[
    str | None,
    typer.Option(
        "--bus",
        callback=typed_url,
        metavar="URL",
        help="The bus: udpm://… (LCM) or zenoh://…. Without it: the newest living run's, DIMOS_STREAMS_BUS,"
        " LCM_DEFAULT_URL, or LCM's usual group.",
    ),
]
RunArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[RUN]",
        help="A run's id, blueprint or process id. Without it: the newest.",
        autocompletion=completion.living_runs,
    ),
]


def run_option(help: str, complete: Callable[..., Any] = completion.living_runs) -> Any:
    """Return the option ``--run``, with what it means to the command."""
    return typer.Option("--run", metavar="RUN", help=help, autocompletion=complete)


RunOption = Annotated[str | None, run_option("A run's id, blueprint or process id. Without it: the newest.")]
_ONLY = "Only this one: a run's id, blueprint or process id."
OnlyRunArgument = Annotated[
    str | None, typer.Argument(metavar="[RUN]", help=_ONLY, autocompletion=completion.living_runs)
]
OnlyRunOption = Annotated[str | None, run_option(_ONLY)]
_KEPT = "A run's id or blueprint, also of one that has ended. Without it: the newest, a living one first."
KeptRunArgument = Annotated[
    str | None, typer.Argument(metavar="[RUN]", help=_KEPT, autocompletion=completion.kept_runs)
]
KeptRunOption = Annotated[str | None, run_option(_KEPT, completion.kept_runs)]


def _named_machine(value: str | None) -> str | None:
    """Return a given name. Raises ``UserError`` for an empty one, which would mean the runs that have no machines."""
    if value == "":
        raise UserError("--machine '' names no machine; without --machine this machine's part is meant")
    return value


Machine = Annotated[
    str | None,
    typer.Option(
        "--machine",
        callback=_named_machine,
        metavar="NAME",
        help="The part of a run on another machine, reached through the bridge.",
    ),
]
AgentName = Annotated[
    str,
    typer.Option(
        "--agent",
        metavar="NAME",
        help="Which agent (its module, its namespace or its `say` skill), if there are several. At a fleet's hub: its"
        " robot.",
    ),
]


def _named_robot(value: str | None) -> str | None:
    """Return a given name. Raises ``UserError`` for an empty one."""
    if value == "":
        raise UserError("--robot '' names no robot of the fleet")
    return value


FleetRobot = Annotated[
    str | None,
    typer.Option(
        "--robot",
        callback=_named_robot,
        metavar="NAME",
        help="At a fleet's hub: the robot that is meant, if there are several.",
    ),
]


def named_run(argument: str | None, option: str | None) -> str | None:
    """Return the run that a command names, which may stand behind ``--run``, as for all others, or without it. Raises
    ``UserError`` if both are given."""
    if argument is not None and option is not None:
        raise UserError(f"--run {option!r} and RUN {argument!r} both name a run; give one of them")
    return option if argument is None else argument


def checked_seed(value: int | None) -> int | None:
    """Return a given seed. Raises ``UserError`` for a negative one."""
    if value is not None and value < 0:
        raise UserError(f"--seed {value}: it must be at least 0")
    return value


def given_on_command_line(context: typer.Context) -> dict[str, str]:
    """Return the options that the command line has, whatever their values: how each is spelled, by its parameter's
    name. None counts while a shell completes the line: its prompt is no place for what is to be said of them."""
    found: dict[str, str] = {}
    if context.resilient_parsing:
        return found
    for option in context.command.params:
        source = context.get_parameter_source(option.name) if option.name else None
        if source is not None and source.name == "COMMANDLINE" and option.param_type_name == "option":
            found[str(option.name)] = option.opts[0]
    return found
