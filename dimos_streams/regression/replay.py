"""Replays a log through the modules under test, in virtual time, and compares what they say and send."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dimos_streams import clock
from dimos_streams.blueprint.checks.argument_check import plain
from dimos_streams.blueprint.model import Blueprint
from dimos_streams.blueprint.wiring import channels_of
from dimos_streams.common.invalid import first_problem
from dimos_streams.errors import UserError
from dimos_streams.recording.metadata import CHANNEL, Metadata
from dimos_streams.recording.reader import LogReader, OnProgress
from dimos_streams.recording.steady_times import steady
from dimos_streams.recording.summary import first_metadata, summarize
from dimos_streams.regression.feed import run_with_feed
from dimos_streams.regression.named_fields import check_fields
from dimos_streams.regression.recorded.earlier_calls import earlier_calls
from dimos_streams.regression.replay_run import RecordedRun, ReplayRun
from dimos_streams.regression.report import Report
from dimos_streams.regression.rewrite import Rewriter
from dimos_streams.regression.scope import Scope, scope_of
from dimos_streams.regression.settings.changed_settings import changed_settings
from dimos_streams.regression.settings.given_settings import REPLAY
from dimos_streams.regression.settings.initial_settings import initial_settings
from dimos_streams.regression.tolerances import EXACT, LIVE, Tolerances
from dimos_streams.tool_stream.protocol.channels import REQUESTS


@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    """The options of a replay: what is tested, and how strictly."""

    modules: tuple[str, ...]
    blueprint: Blueprint | None = None
    """The blueprint to run, or None for the recording's own."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Config values that are changed: ``{"follow.distance_gain": 1.3}``. With them each life of a module begins,
    whatever an operator had set before it in the recorded run."""
    tolerances: Tolerances | None = None
    """The tolerances, or None for the usual ones: equality for recordings of virtual runs, ``LIVE`` for others."""
    seed: int | None = None
    """The seed, or None for the recording's own."""
    update: bool = False
    """True to write what the modules give now into the log, in place of what it has."""
    with_series: bool = False


_LONGEST_LEAD_US = 6 * 3600 * 1_000_000
"""The longest time, in µs, between the beginning of a virtual run and the first event of its recording, or of a part
that was cut out of it. Later stamps are of another clock, as those of a recording of a recording that was played."""


def replay(path: Path, options: ReplayOptions, on_progress: OnProgress | None = None) -> Report:
    """Replay one log; differences are in the report. Runs a loop of its own, so it can't be called from a coroutine.

    Raises ``UserError`` for what a person can mend, and the errors of ``cannot_write`` if the log can't be written
    anew: it is as it was then.
    """
    with LogReader(path) as log:
        metadata = first_metadata(log)
        blueprint = options.blueprint or _own_blueprint(log, metadata)
        blueprint = blueprint.configured(plain(options.settings), source=REPLAY)
        first = next((event.utime for event in steady(log.events(), warns=False) if event.channel != CHANNEL), None)
        if first is None:
            raise UserError(_no_events(log))
        tolerances = options.tolerances or usual_tolerances(metadata)
        seed = options.seed if options.seed is not None else metadata.seed if metadata else 0
        recorded = metadata.selected() if metadata is not None else _all_that_is_in(log)
        scope = scope_of(blueprint, options.modules, recorded)
        _check_inputs(log, scope)
        check_fields(tolerances, channels_of(blueprint), scope.outputs)
        initial = initial_settings(steady(log.events(), warns=False), scope.names)
        recorded_run = RecordedRun(
            log=log,
            earlier=earlier_calls(steady(log.events(), warns=False), scope),
            settings=initial,
            seed=seed,
            acknowledged=recorded(REQUESTS),
            withheld=scope.withheld(recorded) if metadata is not None else frozenset(),
        )
        with Rewriter(path, tolerances) if options.update else contextlib.nullcontext() as rewriter:
            run = ReplayRun(
                recorded_run,
                scope,
                tolerances,
                rewriter=rewriter,
                with_series=options.with_series,
                on_progress=on_progress,
            )
            report: Report = run_with_feed(run.run, _start_utime(metadata, first))
        changed = changed_settings(metadata, blueprint, options.modules, initial)
        remarks = (*report.remarks, *_unknown_then(metadata, options.modules))
        return dataclasses.replace(report, settings=tuple(changed), remarks=remarks)


def _start_utime(metadata: Metadata | None, first: int) -> int:
    """Return the time at which a replay begins. Sums of floats depend on where they begin, so virtual recordings are
    replayed from their own beginning."""
    is_near = 0 <= first - clock.VIRTUAL_EPOCH_US <= _LONGEST_LEAD_US
    return clock.VIRTUAL_EPOCH_US if _is_virtual(metadata) and is_near else first


def usual_tolerances(metadata: Metadata | None) -> Tolerances:
    """Return the tolerances for a log with such metadata, unless somebody wants others."""
    return EXACT if _is_virtual(metadata) else LIVE


def _unknown_then(metadata: Metadata | None, modules: Iterable[str]) -> Iterator[str]:
    """Yield a line for each module that the recorded run did not have, as one that was called otherwise."""
    had = (metadata.blueprint or {}).get("modules") if metadata is not None else None
    if isinstance(had, Mapping):
        for name in modules:
            if name not in had:
                yield (
                    f"the recorded run had no module {name!r} (modules: {', '.join(map(str, had))}): one that is"
                    " called otherwise now is found by its name of then, which --blueprint can give it"
                )


def _is_virtual(metadata: Metadata | None) -> bool:
    return metadata is not None and metadata.mode == "virtual"


def _all_that_is_in(log: LogReader) -> Callable[[str], bool]:
    """Return a test of whether a log that doesn't say what was recorded has a channel."""
    return {event.channel for event in log.events()}.__contains__


def _check_inputs(log: LogReader, scope: Scope) -> None:
    """Raise ``UserError`` for a required input that nothing in the blueprint sends, as one that is called otherwise
    than in the recorded run."""
    for port in scope.unsupplied():
        alike = {event.channel for event in log.events() if event.channel.endswith(f"#{port.type_name}")}
        has = ", ".join(sorted(alike)) or "nothing"
        raise UserError(
            f"{port.name} reads {port.channel}, which nothing in the blueprint sends; of its type log"
            f" {str(log.path)!r} has {has}"
        )


def recorded_blueprint(path: Path) -> Blueprint:
    """The blueprint of the run that a log is from. Raises ``UserError`` if the log does not say."""
    with LogReader(path) as log:
        return _own_blueprint(log, first_metadata(log))


def _own_blueprint(log: LogReader, metadata: Metadata | None) -> Blueprint:
    if metadata is None or metadata.blueprint is None:
        raise UserError(_why_no_blueprint(log))
    try:
        return Blueprint.model_validate(metadata.blueprint)
    except ValidationError as error:
        why = first_problem(error, "the blueprint")
        raise UserError(
            f"log {str(log.path)!r} says of itself what is no blueprint: {why}; name one with --blueprint"
        ) from error


def _why_no_blueprint(log: LogReader) -> str:
    summary = summarize([log])
    if not summary.events:
        return _no_events(log)
    what = "does not say which blueprint ran"
    if summary.metadata is None and summary.metadata_fault:
        what = f"says of itself what can't be read: {summary.metadata_fault}"
    return f"log {str(log.path)!r} {what}; name the blueprint with --blueprint"


def _no_events(log: LogReader) -> str:
    return f"log {str(log.path)!r} has no events"
