"""The bridge that a command asks, as options choose it, and what else ``--run`` may name in some commands."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from dimos_streams.cli.system import completion
from dimos_streams.cli.terminal.options import KeptRunOption, RunOption, given_on_command_line, run_option, typed_url
from dimos_streams.cli.terminal.output import note
from dimos_streams.common.secrets import checked, know
from dimos_streams.errors import UserError

_TOKEN_VARIABLE = "DIMOS_STREAMS_TOKEN"


def environment_token() -> str | None:
    """Return the token that the environment has, or None; it is looked for in texts from now on. Raises ``UserError``
    for one that can't be sent, also for an empty one: whoever set it thinks that there is a token."""
    given = os.environ.get(_TOKEN_VARIABLE)
    return None if given is None else _known_token(given, _TOKEN_VARIABLE)


def _known_token(token: str, where: str) -> str:
    know(checked(token, where), where="the token")
    return token


def _typed_token(context: typer.Context, value: str | None) -> str | None:
    """Return the token of the command line, which every user can see."""
    if value is None or "token" not in given_on_command_line(context):
        return None
    _known_token(value, "--token")
    note(f"--token shows the token in the list of processes, to every user; {_TOKEN_VARIABLE} does not")
    return value


def token_option(whose: str) -> Any:
    """Return the option ``--token``, with what the token is to the command."""
    safer = "Safer in the environment variable: every user of the machine can read a command's arguments."
    return typer.Option("--token", envvar=_TOKEN_VARIABLE, callback=_typed_token, help=f"{whose} {safer}")


Token = Annotated[str | None, token_option("The token that the bridge requires of every request.")]
"""The token of the command line only: that of the environment is looked at where a bridge is asked."""


@dataclass(frozen=True, kw_only=True)
class BridgeChoice:
    """The choice of a bridge: by a run, a URL or a port, or by none of them. Nothing is looked for yet, which
    ``find_bridge`` does."""

    run: RunOption = None
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            callback=typed_url,
            metavar="URL",
            help="The bridge's address. Without it: that of the newest living run, or if none lives, port 7780 of"
            " this machine.",
        ),
    ] = None
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=65535, help="The bridge's port on this machine.")
    ] = None
    token: Token = None

    @property
    def has_address(self) -> bool:
        """True if the bridge is named by its address, whatever runs there are."""
        return (self.url, self.port) != (None, None)

    @property
    def sent_token(self) -> str | None:
        """The token that is sent to the bridge: that of the command line, else of the environment. Raises
        ``UserError`` as ``environment_token`` does."""
        return self.token or environment_token()

    def refuse_unless(self, is_asked: bool, *, by: str) -> None:
        """Raise ``UserError`` for options that name a bridge to a command that asks none."""
        if not is_asked and (self.has_address or self.token is not None):
            raise UserError(f"--url, --port and --token are of the bridge that {by} asks; without it none is asked")

    def check(self) -> None:
        """Raise ``UserError`` for options that name a bridge twice."""
        if self.run is not None and self.has_address:
            raise UserError("--run names a bridge as --url and --port do; give one of them")
        if self.url is not None and self.port is not None:
            raise UserError("--url and --port name the same thing; give one of them")

    def __str__(self) -> str:
        """Return the options as typed behind another command, which then asks the same bridge; without the token,
        which may not be shown."""
        given = {"--run": self.run, "--url": self.url, "--port": None if self.port is None else str(self.port)}
        return "".join(f" {option} {shlex.quote(value)}" for option, value in given.items() if value is not None)


@dataclass(frozen=True, kw_only=True)
class KeptBridge(BridgeChoice):
    """The choice of a bridge that may have ended with its run, whose journal then answers in its place."""

    run: Annotated[
        str | None,
        run_option(
            "A run's id or blueprint, also of one that has ended. Without it: the newest that lives.",
            completion.kept_runs,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class LogsBridge(BridgeChoice):
    """The choice of the bridge that reaches a part on another machine; the run may have ended if its logs are
    here."""

    run: KeptRunOption = None


@dataclass(frozen=True, kw_only=True)
class Bridges(BridgeChoice):
    """The choice of the bridges that an order goes to: one, or those of all living runs."""

    run: Annotated[str | None, run_option("A run's id, blueprint or process id. Without it: all living runs.")] = None
