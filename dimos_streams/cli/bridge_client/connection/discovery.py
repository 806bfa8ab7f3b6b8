"""The run, the bridge or the bus that a command is for, by what its options name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dimos_streams.cli.bridge_client.connection.address import BridgeAddress
from dimos_streams.cli.option_groups.bridge_choice import BridgeChoice
from dimos_streams.cli.terminal.named_runs import are_parts_of_one, newest_of, part_with, refuse_several, runs_called
from dimos_streams.cli.terminal.output import note
from dimos_streams.common.process.loopback import BRIDGE_PORT
from dimos_streams.common.schemas.http_url import bridge_url
from dimos_streams.errors import DimosStreamsError, NoRunError, UserError

if TYPE_CHECKING:
    from dimos_streams.runtime.registry import RunRecord


def find_bridge(choice: BridgeChoice) -> BridgeAddress:
    """Return the bridge of a choice: that of the run, URL or port that it names, else that of the newest living run
    that has one, else the one at the usual port.

    A note says which one it is if several runs have one, and if it was found by its port, because that may be
    somebody else's, and commands may move a robot. A living run's token is used if none is given. Raises
    ``UserError`` for a choice that contradicts itself, and for runs that have no bridge, named or not.
    """
    choice.check()
    if choice.run is not None:
        record, *others = living_runs(choice.run)
        address = bridge_of_run(record, choice.sent_token)
        newest_of([record, *(run for run in others if not _shares(run, address))], choice.run)
        if address is None:
            raise _bridgeless(record)
        return address
    if choice.url is not None:
        return BridgeAddress(bridge_url(choice.url), choice.sent_token)
    return _bridge_here(choice.port, choice.sent_token)


def bridge_of_run(run: RunRecord, token: str | None = None) -> BridgeAddress | None:
    """Return the bridge of a run, with the run's own token if none is given: its own, or, of one part of a blueprint,
    that of another part that lives here; None if it has none that could be asked."""
    from dimos_streams.runtime.registry import runs

    if run.bridge_url is not None:
        return BridgeAddress(run.bridge_url, token or run.token, run=run)
    others = runs() if run.bridge_on else []
    asked = next((each for each in others if each.bridge_url is not None and are_parts_of_one(run, each)), None)
    return None if asked is None else bridge_of_run(asked, token)


def _shares(run: RunRecord, bridge: BridgeAddress | None) -> bool:
    own = bridge_of_run(run)
    return own is not None and bridge is not None and own.url == bridge.url


def _bridge_here(port: int | None, token: str | None) -> BridgeAddress:
    from dimos_streams.runtime.registry import runs

    try:
        living = [run for run in runs() if port in (None, run.port)]
    except UserError:
        if port is None:
            raise
        living = []  # with an address nothing of them is needed, but for a token that was not given
    for number, run in enumerate(living):
        if run.bridge_url is not None:
            for newer in living[:number]:
                if not are_parts_of_one(newer, run):
                    note(f"run {newer.run_id} is newer and has no bridge: {run.run_id} is asked")
            newest_of([run, *(each for each in living if each.bridge_url not in (None, run.bridge_url))])
            return BridgeAddress(run.bridge_url, token or run.token, run=run)
    if port is not None:
        return BridgeAddress(f"http://127.0.0.1:{port}", token)
    if living:
        raise _bridgeless(living[0])
    if unreadable := _unreadable():
        raise UserError(unreadable)
    usual = BridgeAddress(f"http://127.0.0.1:{BRIDGE_PORT}", token, is_guess=True)
    note(f"no run of yours lives: whatever bridge answers at {usual.url} is asked")
    return usual


def _bridgeless(run: RunRecord) -> UserError:
    text = f"run {run.run_id} has no bridge that could be asked"
    if run.bridge_on:
        text += (
            f": it is on machine {run.bridge_on!r}; start its part there, or give --url, or start this part with"
            " --bridge URL"
        )
    return UserError(text)


def find_bus_url(given: str | None) -> str:
    """Return the bus that an option names, else the newest living run's, else the environment's, else LCM's usual
    one."""
    from dimos_streams.runtime.registry import runs

    return bus_among(runs() if given is None else (), given)


def bus_among(living: Iterable[RunRecord], given: str | None) -> str:
    """Return the bus that an option names, else that of the first of these runs that others can reach, else the
    environment's, else LCM's usual one."""
    from dimos_streams.bus import bus_url
    from dimos_streams.bus.url import leaves_process

    if given is None:
        given = next((run.bus_url for run in living if leaves_process(run.bus_url)), None)
    return bus_url(given)


def living_runs(selector: str | None = None) -> list[RunRecord]:
    """Return the living runs with an id, blueprint, process id or machine, or all, newest first. Raises
    ``NoRunError`` if none lives, and ``UserError`` if none that lives is called so; they say how the one has ended
    that was called so, if it is kept. Raises ``DimosStreamsError`` if only runs live whose records can't be read."""
    from dimos_streams.cli.bridge_client.ended import ended_called, last_ended
    from dimos_streams.runtime.registry import runs

    if meant := runs_called(selector, living := runs()):
        return meant
    ended = "" if selector is None else ended_called(selector)
    unreadable = _unreadable()
    if not living and unreadable:
        raise DimosStreamsError(unreadable)
    if not living:
        raise NoRunError(f"no run lives{ended or last_ended()}")
    known = ", ".join(run.run_id for run in living)
    raise UserError(
        f"no living run is called {selector!r} (living: {known}){ended}{unreadable and f'; {unreadable}'}"
    )


def _unreadable() -> str:
    """Return what is to be said of living runs whose records can't be read; empty if there are none."""
    from dimos_streams.runtime.unreadable_runs import unreadable_runs

    return "; ".join(map(str, unreadable_runs()))


def find_run(selector: str | None, *, alone: bool = False) -> RunRecord:
    """Return the living run of a name, or without one any; of several the newest, which is said. A name that several
    have is refused if the run is to be ``alone``. Raises as ``living_runs`` does."""
    meant = living_runs(selector)
    if alone and selector is not None:
        refuse_several(meant, selector)
    return newest_of(meant, selector)


def find_run_with(place: str, selector: str | None) -> RunRecord:
    """Return the living run of a name, or without one any: of the parts of one blueprint the one that has a module or
    process called ``place``. Else as ``find_run``."""
    return part_with(place, living_runs(selector), selector)
