"""The living runs of this machine, by the names that commands have for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dimos_streams.cli.terminal.output import note
from dimos_streams.errors import UserError

if TYPE_CHECKING:
    from dimos_streams.runtime.registry import RunRecord


def runs_called(selector: str | None, living: Iterable[RunRecord]) -> list[RunRecord]:
    """Return those of living runs that a name means: the id of one, or a blueprint, process id or machine. Without a
    name it is all of them."""
    living = list(living)
    if selector is None:
        return living
    by_id = [run for run in living if run.run_id == selector]
    return by_id or [run for run in living if selector in (run.blueprint, str(run.pid), run.machine or None)]


def newest_of(meant: Sequence[RunRecord], selector: str | None = None) -> RunRecord:
    """Return the first of the runs that may be meant, and say which it is if there are several: a robot moves by
    it."""
    if others := meant[1:]:
        which = "several runs live" if selector is None else f"several runs are called {selector!r}"
        note(f"{which}: {meant[0].run_id}, the newest, is meant, not {_ids(others)}")
    return meant[0]


def part_with(place: str, meant: Sequence[RunRecord], selector: str | None = None) -> RunRecord:
    """Return the newest of the runs that may be meant, or, if it is a part of a blueprint, the newest of the parts
    that have a module or a process called ``place``. Say which it is if others are meant, too."""
    parts = parts_of_newest(meant)
    having = [run for run in parts if any(place in (each.label, *each.modules) for each in run.processes)]
    strangers = [run for run in meant if run not in parts]
    return newest_of([*having, *strangers] if having else meant, selector)


def parts_of_newest(meant: Sequence[RunRecord]) -> list[RunRecord]:
    """Return the newest of some runs and, if it is a part of a blueprint, the other parts of that, the newest
    first."""
    return [run for run in meant if run is meant[0] or are_parts_of_one(run, meant[0])]


def are_parts_of_one(run: RunRecord, other: RunRecord) -> bool:
    """Return whether two runs are parts of one blueprint on one bus, so that the bridge of one is that of the
    other."""
    return bool(run.bridge_on) and _whole(run) == _whole(other)


def _whole(run: RunRecord) -> tuple[str, str, str]:
    return run.blueprint, run.bridge_on, run.bus_url


def refuse_several(meant: Sequence[RunRecord], selector: str) -> None:
    """Raise ``UserError`` for the name of several runs, where an order must not reach another than the one that is
    meant."""
    if len(meant) > 1:
        raise UserError(f"several runs are called {selector!r}; name one of them by its id: {_ids(meant)}")


def _ids(runs: Iterable[RunRecord]) -> str:
    return ", ".join(run.run_id for run in runs)
