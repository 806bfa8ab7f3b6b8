"""The way from arguments to an exit code: an error that a person can mend is one line, any other a traceback."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from typing import Any, cast

import typer

from dimos_streams.cli.app import create_app
from dimos_streams.cli.exit_codes import DONE, MISUSED, code_of_error
from dimos_streams.cli.option_groups.foxglove_option import with_default_address
from dimos_streams.cli.system.signals import Interrupted
from dimos_streams.cli.system.terminal_width import widen
from dimos_streams.cli.terminal.output import flush_output, note
from dimos_streams.common.importing import find_named_first_in
from dimos_streams.common.printable import show_tracebacks
from dimos_streams.common.process.own_code import DEBUG
from dimos_streams.common.secrets import know_environment
from dimos_streams.errors import BadRequestError, DimosStreamsError

_ClickException = typer.BadParameter.__mro__[2]  # newer typers have a click of their own
_REASON = "--reason"
_EXTRA = "Got unexpected extra argument"
PROGRAM = "dimos-streams"
_BLUEPRINT = "BLUEPRINT"
_ARGUMENT = "NAME=VALUE"
"""What options take of which each is an argument of a skill's call."""


def run_command(arguments: list[str]) -> int:
    """Run one command and return its exit code, see ``exit_codes``."""
    know_environment(os.environ)
    show_tracebacks()
    widen()
    here = _working_directory()
    if here is not None:
        find_named_first_in(here)  # so that a user's own blueprints and modules are found where they stand
    arguments = with_default_address(arguments)
    try:
        with flush_output():
            code = _command(arguments)(arguments, prog_name=PROGRAM, standalone_mode=False)
        return code if isinstance(code, int) else DONE
    except Interrupted as error:
        return error.exit_code
    except DimosStreamsError as error:
        if os.environ.get(DEBUG):
            raise
        _say(_text_of(error))
        return code_of_error(error)
    except FileNotFoundError:
        if _working_directory() is not None or os.environ.get(DEBUG):
            raise
        _say("the working directory was deleted; change to one that exists")
        return MISUSED
    except Exception as error:
        if not isinstance(error, _ClickException):
            raise
        return _usage_error(error, arguments)


def _command(arguments: list[str]) -> Callable[..., object]:
    """Return what runs ``arguments``. It is not the app itself: to call that puts typer's own hook, which redacts
    nothing, in the place of the one that shows tracebacks."""
    return typer.main.get_command(create_app(arguments))


def _text_of(error: DimosStreamsError) -> str:
    if not isinstance(error, BadRequestError) or not error.problems:
        return str(error)
    from dimos_streams.cli.terminal.typed_names import problems_as_typed

    return problems_as_typed(error.problems)


def _working_directory() -> str | None:
    """Return the working directory, None if it was deleted."""
    try:
        return os.getcwd()
    except OSError:
        return None


def _usage_error(error: Exception, arguments: list[str]) -> int:
    if (wrong := _unfit_value(error.__cause__)) is not None:
        error.message = wrong  # type: ignore[attr-defined]
    text = error.format_message()  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    if not text:  # no command was given: typer has printed the help
        return MISUSED
    path = context.command_path if context is not None else _path_of(arguments)
    _say(f"{text.rstrip('.')}{_forgotten_option(text, context)} (`{path} --help` says what it takes)")
    return MISUSED


def _path_of(arguments: list[str]) -> str:
    """Return the words with which the command begins that arguments name. An option without its value has no context
    that would have them."""
    path, command = PROGRAM, cast("Any", _command(arguments))
    for word in arguments:
        if word.startswith("-"):
            continue
        if (command := getattr(command, "commands", {}).get(word)) is None:
            break
        path += f" {word}"
    return path


def _unfit_value(cause: BaseException | None) -> str | None:
    """Return what is wrong with the value of an option, in the words that settings have for it; None if pydantic has
    not looked at it."""
    if cause is None:
        return None
    from pydantic import ValidationError

    from dimos_streams.common.invalid import what_is_wrong, with_values

    if not isinstance(cause, ValidationError):
        return None
    details = cause.errors(include_url=False)
    if details[0]["type"] == "value_error":
        return what_is_wrong(details[0])
    return next(iter(with_values(details, "").values()))


def _forgotten_option(text: str, context: Any) -> str:
    """Return a hint at the quotation marks that a text lacks, or at the option of a command that takes what stands
    there without one, ``x=1`` for ``--arg x=1``, or a reason; or that there is one blueprint."""
    if context is None or not text.startswith(_EXTRA):
        return ""
    takes = context.command.params
    options = {str(each.metavar): each.opts[0] for each in takes if each.opts[0].startswith("-")}
    option = next((name for metavar, name in options.items() if metavar.endswith("=VALUE")), None)
    if "=" in text and option is not None:
        return f"; put {option} before it"
    if any(each.metavar == "TEXT" and context.params.get(each.name) for each in takes):
        return "; put the whole text in quotes"
    if _ARGUMENT in options:
        skill = context.params.get("skill")
        listed = f": `{PROGRAM} skills {shlex.quote(skill)}` lists them" if skill else ""
        return f"; arguments are given as {options[_ARGUMENT]} {_ARGUMENT}{listed}"
    if any(_REASON in each.opts for each in takes):
        return f"; a reason stands behind {_REASON}"
    return "; give one blueprint" if any(str(each.metavar).strip("[]") == _BLUEPRINT for each in takes) else ""


def _say(text: str) -> None:
    for line in text.splitlines() or [""]:
        note(f"error: {line}")
