"""The values that a shell offers for an argument: what this machine has at the moment."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterable

import typer

from dimos_streams.common.readable.shortening import shortened
from dimos_streams.errors import DimosStreamsError

_LONGEST_WORDS = 55
"""Maximum characters of the words on a value: shells show them beside it, and longer ones would be wrapped."""

_VALUE = re.compile(r"[\w./@+-]+", re.ASCII)
_NO_WORDS = re.compile(r"[^\w .,/+-]+")
"""What is left out of words. Shells evaluate what they are given, and what modules say of themselves is anybody's."""

Offer = tuple[str, str]
"""A value, and a few words on it for shells that show them."""
Source = Callable[[typer.Context, str], list[Offer]]


def offering(source: Callable[[typer.Context], Iterable[Offer]]) -> Source:
    """Offer of a source's values those that begin as the person has begun, and that mean nothing to a shell. A source
    that can't be asked offers nothing: a shell has no place for the reason, and the command itself will say it."""

    def offered(context: typer.Context, incomplete: str) -> list[Offer]:
        try:
            with contextlib.redirect_stderr(io.StringIO()):  # notes are for who runs a command
                found = list(source(context))
        except DimosStreamsError:
            return []
        fitting = [offer for offer in found if offer[0].startswith(incomplete) and _VALUE.fullmatch(offer[0])]
        first = dict(reversed(fitting))  # which the command means, of what several parts of a blueprint have
        return [(value, shortened(_plain(first[value]), _LONGEST_WORDS)) for value in dict(fitting)]

    return offered


def _plain(words: str) -> str:
    return " ".join(_NO_WORDS.sub(" ", words).split())


@offering
def blueprints(context: typer.Context) -> Iterable[Offer]:
    """The stock blueprints; files are the shell's own."""
    from dimos_streams.blueprint.load import stock_summaries

    return ((summary.name, summary.description) for summary in stock_summaries())


@offering
def living_runs(context: typer.Context) -> Iterable[Offer]:
    """The ids of the living runs, the newest first."""
    from dimos_streams.runtime.registry import runs

    return ((run.run_id, f"process {run.pid}") for run in runs())


@offering
def kept_runs(context: typer.Context) -> Iterable[Offer]:
    """The ids of all runs whose files are there, also of those that have ended."""
    from dimos_streams.common.process.run_owner import run_id_of
    from dimos_streams.runtime.run_directories import run_dirs

    return ((run_id_of(directory), "") for directory in run_dirs())
