"""The command that plays a log onto a bus, or tests modules with it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dimos_streams.cli.commands.of_logs.opened_logs import open_logs
from dimos_streams.cli.commands.of_logs.playing import play
from dimos_streams.cli.exit_codes import FAILED
from dimos_streams.cli.terminal import log_options, options
from dimos_streams.cli.terminal.output import note, write, write_json
from dimos_streams.errors import UserError

if TYPE_CHECKING:
    from dimos_streams.blueprint.model import Blueprint
    from dimos_streams.recording.reader import LogReader
    from dimos_streams.regression.replay import ReplayOptions
    from dimos_streams.regression.report import Report
    from dimos_streams.regression.tolerances import Tolerances

_OF_TESTS = {field.name for field in fields(log_options.ModuleTest)}
_OF_PARTS = {field.name for field in fields(log_options.RemappedPart)}
_OF_PLAYING = {"speed", "loop", "bus", "onto_run"}


def replay(
    context: typer.Context,
    files: log_options.Files,
    speed: log_options.Speed = 1.0,
    *,
    wanted: log_options.RemappedPart,
    loop: log_options.Loop = False,
    bus: options.BusUrl = None,
    onto_run: log_options.OntoRun = False,
    modules: log_options.Modules = None,
    test: log_options.ModuleTest,
) -> None:
    """Play a log onto the bus. With `--modules`, test modules with it; exits with 1 if they behave differently."""
    given = options.given_on_command_line(context)
    if modules is None:
        if of_tests := [option for name, option in given.items() if name in _OF_TESTS]:
            raise UserError(f"{of_tests[0]} goes with --modules, which names the modules to test")
        play(files, wanted.part(), speed, bus, loop=loop, onto_run=onto_run)
        return
    if len(files) > 1 or not _OF_PARTS.isdisjoint(given):
        raise UserError("modules are tested with one whole log; `recording cut` makes one of a part or of several")
    if of_playing := [option for name, option in given.items() if name in _OF_PLAYING]:
        raise UserError(f"{of_playing[0]} is for playing a log onto a bus; modules are tested without one")
    with open_logs(files) as logs:  # what is no log is reported before anything else
        given_tolerances = _tolerances(logs[0], test)
    from dimos_streams.regression.replay import ReplayOptions

    chosen = ReplayOptions(
        modules=tuple(name.strip() for name in modules.split(",") if name.strip()),
        blueprint=_load_blueprint(files[0], test),
        tolerances=given_tolerances,
        seed=test.seed,
        update=test.update,
        with_series=test.plot is not None,
    )
    _show(_test(files[0], chosen), files[0], test.plot, as_json=test.as_json)


def _show(report: Report, file: Path, plot: Path | None, *, as_json: bool) -> None:
    """Show what a test has found, and draw it. Raises ``typer.Exit`` if modules behaved differently."""
    if as_json:
        write_json(report.to_dict(), indent=2)
    else:
        for line in report.lines():
            write(line)
    if plot is not None:
        _draw(report, plot)
    if report.updated:
        note(f"{file} has what the modules give now")
    elif not report.passed:
        raise typer.Exit(FAILED)


def _draw(report: Report, picture: Path) -> None:
    """Draw what a test has found. Raises ``UserError`` if that can't be, unless the test has failed: that counts."""
    from dimos_streams.regression.plot import draw

    try:
        draw(report, picture)
    except UserError as error:
        if report.passed or report.updated:
            raise
        note(f"no picture: {error}")
    else:
        note(f"picture: {picture}")


def _load_blueprint(file: Path, test: log_options.ModuleTest) -> Blueprint:
    """Return the blueprint of the modules under test, with the settings of the command line."""
    from dimos_streams.blueprint.load import resolve
    from dimos_streams.blueprint.settings import apply_settings
    from dimos_streams.regression.replay import recorded_blueprint

    # What the environment sets is about this machine's runs, not about the one that was recorded.
    blueprint = resolve(test.blueprint) if test.blueprint else recorded_blueprint(file)
    return apply_settings(blueprint, {}, test.settings or ())


def _tolerances(log: LogReader, test: log_options.ModuleTest) -> Tolerances:
    """Return the tolerances of a file, or else the usual ones of such a log, with what the command line says of
    single ones."""
    from dimos_streams.recording.summary import first_metadata
    from dimos_streams.regression.replay import usual_tolerances
    from dimos_streams.regression.tolerances import EXACT, load_tolerances, with_settings

    file, settings, time_s = test.tolerances, test.tolerance or [], test.time_tolerance
    if test.exact and (file is not None or settings or time_s is not None):
        raise UserError("--exact allows no tolerances")
    if test.exact:
        return EXACT
    base = load_tolerances(file) if file is not None else usual_tolerances(first_metadata(log))
    return with_settings(base, settings, time_s)


def _test(file: Path, chosen: ReplayOptions) -> Report:
    from dimos_streams.cli.terminal.progress import progress
    from dimos_streams.regression.replay import replay as replay_log

    size = file.stat().st_size if file.exists() else 0
    with progress("replaying", size) as advance:
        return replay_log(file, chosen, lambda log: advance(log.position))
