"""The command line, put together of its commands. Only what their arguments need is imported here; the rest inside
each command."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import typer

from dimos_streams.cli import exit_codes
from dimos_streams.cli.option_groups.help_paragraphs import help_of
from dimos_streams.cli.option_groups.home_paths import with_home_paths
from dimos_streams.cli.option_groups.ungrouped import ungrouped
from dimos_streams.cli.option_groups.whole_texts import with_whole_texts
from dimos_streams.common.process.own_code import DEBUG

_DEBUG, _VERSION = "--debug", "--version"
_CONTROL = "The operator's control"
_BLUEPRINTS, _RUNS, _SKILLS = "Blueprints", "Runs", "Skills and the agent"
_BUS, _LOGS = "The bus and this machine", "Recordings"
_FLEET = "Fleets"


@dataclass(frozen=True, slots=True)
class _Command:
    """A command of the command line, or a group of them, that is imported only if it is needed."""

    name: str
    panel: str
    module: str
    """The name of its module within ``cli.commands``."""
    function: str = ""
    """The command; empty for a group of commands, which the module's ``create_app`` makes."""

    def add_to(self, app: typer.Typer) -> None:
        module = import_module(f"dimos_streams.cli.commands.{self.module}")
        if self.function:
            command: Callable[..., Any] = getattr(module, self.function)
            app.command(self.name, rich_help_panel=self.panel)(ungrouped(command))
        else:
            app.add_typer(module.create_app(), name=self.name, rich_help_panel=self.panel)


_COMMANDS = (
    _Command("run", _RUNS, "run", "run"),
    _Command("status", _RUNS, "of_runs.status", "status"),
    _Command("stop", _RUNS, "of_runs.stop", "stop"),
    _Command("set", _RUNS, "of_runs.live", "set_settings"),
    _Command("restart", _RUNS, "of_runs.live", "restart"),
    _Command("logs", _RUNS, "of_runs.logs", "logs"),
    _Command("missions", _RUNS, "of_runs.missions", "missions"),
    _Command("list", _BLUEPRINTS, "blueprints", "list_blueprints"),
    _Command("new", _BLUEPRINTS, "new"),
    _Command("check", _BLUEPRINTS, "blueprints", "check"),
    _Command("graph", _BLUEPRINTS, "blueprints", "graph"),
    _Command("config", _BLUEPRINTS, "blueprints", "config"),
    _Command("say", _SKILLS, "of_runs.say", "say"),
    _Command("chat", _SKILLS, "of_runs.chat", "chat"),
    _Command("skills", _SKILLS, "of_runs.skills", "skills"),
    _Command("call", _SKILLS, "of_runs.calls", "call"),
    _Command("follow", _SKILLS, "of_runs.calls", "follow"),
    _Command("calls", _SKILLS, "of_runs.calls", "calls"),
    _Command("cancel", _SKILLS, "of_runs.calls", "cancel"),
    _Command("approvals", _CONTROL, "of_runs.operator", "approvals"),
    _Command("approve", _CONTROL, "of_runs.operator", "approve"),
    _Command("reject", _CONTROL, "of_runs.operator", "reject"),
    _Command("pause", _CONTROL, "of_runs.operator", "pause"),
    _Command("resume", _CONTROL, "of_runs.operator", "resume"),
    _Command("step", _CONTROL, "of_runs.operator", "step"),
    _Command("abort", _CONTROL, "of_runs.operator", "abort"),
    _Command("undo", _CONTROL, "of_runs.operator", "undo"),
    _Command("stop-robot", _CONTROL, "of_runs.robots", "stop_robot"),
    _Command("release-robot", _CONTROL, "of_runs.robots", "release_robot"),
    _Command("forget", _CONTROL, "of_runs.operator", "forget"),
    _Command("monitor", _CONTROL, "of_runs.monitor", "monitor"),
    _Command("topics", _BUS, "topics"),
    _Command("messages", _BUS, "messages"),
    _Command("recording", _LOGS, "of_logs.recording"),
    _Command("replay", _LOGS, "of_logs.replay", "replay"),
    _Command("hub", _FLEET, "of_hubs.hub"),
    _Command("doctor", _BUS, "doctor", "doctor"),
)


def create_app(arguments: Sequence[str] = ()) -> typer.Typer:
    """Return the whole command line, or only the command that ``arguments`` name: each takes its time to put
    together."""
    app = typer.Typer(
        help="Middleware for robots whose skills talk back.",
        epilog=exit_codes.table(),
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_global_options)
    first = next((argument for argument in arguments if argument != _DEBUG), None)
    named = [command for command in _COMMANDS if command.name == first]
    for command in named if named or first == _VERSION else _COMMANDS:
        command.add_to(app)
    _prepare_commands_of(app)
    return app


def _prepare_commands_of(app: typer.Typer) -> None:
    """Have all commands refuse texts that are not UTF-8, find paths in the user's directory, and have their help
    wrapped at the terminal's width."""
    for command in app.registered_commands:
        if command.callback is not None:
            command.help = command.help or help_of(command.callback.__doc__)
            command.callback = with_home_paths(with_whole_texts(command.callback))
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _prepare_commands_of(group.typer_instance)


def _show_version(wanted: bool) -> None:
    if wanted:
        from dimos_streams import __version__

        print(__version__)
        raise typer.Exit


def _global_options(
    debug: Annotated[bool, typer.Option(_DEBUG, help="Show tracebacks; so does DIMOS_STREAMS_DEBUG=1.")] = False,
    version: Annotated[
        bool, typer.Option(_VERSION, help="Show the version.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    if debug:
        os.environ[DEBUG] = "1"
