"""The commands that look at blueprints without running them: list, check, graph, config."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dimos_streams.cli.exit_codes import FAILED, MISUSED
from dimos_streams.cli.running.configured_blueprint import configure, configured_blueprint
from dimos_streams.cli.system import completion
from dimos_streams.cli.terminal import options
from dimos_streams.cli.terminal.output import note, write, write_json, write_lines, write_table
from dimos_streams.common.readable.plural import plural
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.readable.unseen import is_printable
from dimos_streams.errors import UserError

if TYPE_CHECKING:
    from dimos_streams.blueprint import Blueprint, Problem
    from dimos_streams.blueprint.load import StockSummary
    from dimos_streams.blueprint.settings import SettingRow
    from dimos_streams.cli.live_check.report import LiveReport

_VALUE_WIDTH = 60
_LIVE_CHECK_S = 5.0


def list_blueprints(as_json: options.Json = False) -> None:
    """List the stock blueprints and those that installed packages register, with the kind of robot in each:
    simulated, on ROS 2, or one that is no part of the run."""
    from dimos_streams.blueprint.load import stock_summaries

    found = stock_summaries()
    if as_json:
        write_json([asdict(summary) for summary in found], indent=2)
    elif found:
        write_table(("NAME", "ROBOT", "DESCRIPTION"), [(row.name, _kinds(row), _described(row)) for row in found])
    else:
        note("there are no stock blueprints")


def _described(row: StockSummary) -> str:
    return f"{row.description} (of {row.package})" if row.package else row.description


def _kinds(row: StockSummary) -> str:
    return ", ".join(kind if count == 1 else f"{count} {kind}" for kind, count in row.robots.items())


def check(
    reference: options.Blueprint,
    settings: options.Settings = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Also listen to the bus, and report which of the topics that the blueprint needs are there.",
        ),
    ] = False,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", min=1.0, help="With --live: how long to listen, in seconds. Without it: 5."),
    ] = None,
    bus: options.BusUrl = None,
    as_json: options.Json = False,
) -> None:
    """Report everything that is wrong with a blueprint, without starting it. Exits with 2 if it can't be run, with 1
    if something that it needs is not on the bus."""
    blueprint, problems = _check_blueprint(reference, settings)
    if not live and (seconds, bus) != (None, None):
        raise UserError("--seconds and --bus say how to listen: they go with --live")
    errors = _errors(problems)
    heard = None
    if live and blueprint is not None and not errors:
        heard = _listen(blueprint, bus, seconds or _LIVE_CHECK_S)
        problems += heard.problems
    if as_json:
        rows = [{"severity": p.severity, "where": p.where, "text": p.text} for p in problems]
        more = {"live": heard.to_dict()} if heard else {}
        write_json({"blueprint": reference, "ok": not _errors(problems), "problems": rows, **more}, indent=2)
    else:
        _write_found(problems, heard)
        write(_verdict(reference, blueprint, problems))
    if _errors(problems):
        raise typer.Exit(MISUSED if errors else FAILED)


def _check_blueprint(reference: str, settings: list[str] | None) -> tuple[Blueprint | None, list[Problem]]:
    """Return the blueprint with its settings, None if there can be none, and what is wrong with it."""
    from dimos_streams.blueprint import BlueprintError
    from dimos_streams.blueprint.check import check_draft
    from dimos_streams.blueprint.load import drafted

    try:
        draft = configure(drafted(reference), settings)
        return draft.blueprint, check_draft(draft)
    except BlueprintError as error:
        return None, list(error.problems)


def _listen(blueprint: Blueprint, bus: str | None, seconds: float) -> LiveReport:
    from dimos_streams.cli.bridge_client.connection import find_bus_url
    from dimos_streams.cli.live_check.live_check import listen_to
    from dimos_streams.cli.system.async_runner import run_async

    return run_async(listen_to(find_bus_url(bus), blueprint, seconds))


def _write_found(problems: Sequence[Problem], heard: LiveReport | None) -> None:
    if heard:
        from dimos_streams.cli.live_check.report import HEADERS

        write_table(HEADERS, heard.table())
    for problem in problems:
        write(str(problem))


def graph(
    reference: options.Blueprint,
    settings: options.Settings = None,
    form: Annotated[Literal["text", "mermaid", "json"], typer.Option("--format", help="How to draw it.")] = "text",
) -> None:
    """Draw the modules of a blueprint and what they send each other."""
    from dimos_streams.blueprint.graph import render

    write_lines(render(configured_blueprint(reference, settings), form))


def config(
    reference: Annotated[
        str | None,
        typer.Argument(
            metavar="[BLUEPRINT]",
            help="A stock name (see `list`), a YAML file, or a Python `module:attribute`; none with --run.",
            autocompletion=completion.blueprints,
        ),
    ] = None,
    settings: options.Settings = None,
    run: Annotated[
        str | None,
        options.run_option(
            "What a living run (its id, blueprint or process id) began with, and what `set` has changed since."
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show every setting of every module, where its value is from, and whether it is live: `set` changes those."""
    from dimos_streams.blueprint.settings import explain

    if (reference is None) == (run is None):
        raise UserError("give either a blueprint or --run with the name of a living run")
    if run is not None and settings:
        raise UserError("--set goes with a blueprint; `dimos-streams set` changes the settings of a living run")
    rows = _settings_of(run) if reference is None else explain(configured_blueprint(reference, settings))
    if as_json:
        write_json([asdict(row) for row in rows], indent=2)
        return
    write_table(("SETTING", "VALUE", "FROM", ""), [_setting_cells(row) for row in rows])


def _setting_cells(row: SettingRow) -> tuple[str, ...]:
    value = shortened(_render(row.value), _VALUE_WIDTH)
    return f"{row.module}.{row.field}", value, row.source, "live" if row.live else ""


def _settings_of(run: str | None) -> list[SettingRow]:
    """Return the settings of a living run. Raises ``UserError`` for a run that there is not."""
    from dimos_streams.cli.bridge_client.answers import MODULES
    from dimos_streams.cli.bridge_client.connection import bridge_of_run, find_run
    from dimos_streams.cli.running.begun_with import kept_settings
    from dimos_streams.cli.system.async_runner import run_async
    from dimos_streams.live_settings import reported_settings

    record = find_run(run)
    rows = kept_settings(record.run_dir)
    if (bridge := bridge_of_run(record)) is None:  # nobody can have set anything
        return rows
    modules = run_async(bridge.get("/modules", MODULES))
    values = {module.name: reported_settings(module.state) for module in modules}
    return [
        replace(row, value=values[row.module][row.field], source="set while it runs")
        if row.field in values.get(row.module, {})
        else row
        for row in rows
    ]


def _errors(problems: Sequence[Problem]) -> int:
    return sum(problem.severity == "error" for problem in problems)


def _verdict(reference: str, blueprint: Blueprint | None, problems: list[Problem]) -> str:
    from dimos_streams.blueprint.machines import machines_of

    if errors := _errors(problems):
        return f"{reference}: {plural(errors, 'error')}"
    assert blueprint is not None
    warnings = f", {plural(len(problems), 'warning')}" if problems else ""
    machines = machines_of(blueprint)
    on = f" on {plural(len(machines), 'machine')} ({', '.join(machines)})" if machines else ""
    return f"{reference}: ok, {plural(len(blueprint.modules), 'module')}{on}{warnings}"


def _render(value: object) -> str:
    """Return a value on one line; text is quoted where it would look like something else."""
    plain = isinstance(value, str) and is_printable(value) and value.strip()
    return str(value) if plain else json.dumps(value, ensure_ascii=False)
