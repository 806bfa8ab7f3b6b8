"""A blueprint as far as its text can be read, with what is wrong with the rest."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dimos_streams.blueprint.model import Blueprint, UnknownModuleError
from dimos_streams.documents.problem import BlueprintError, Problem, errors_among, problems_of
from dimos_streams.errors import UserError


@dataclass(frozen=True, slots=True)
class Draft:
    """A blueprint as far as it could be read."""

    blueprint: Blueprint
    problems: tuple[Problem, ...] = ()
    """The problems of the text, and of settings on top of it."""
    whole: bool = True
    """False if modules may be missing or connected otherwise because of the problems, so that nobody can say yet what
    the blueprint lacks."""

    def sound(self) -> Blueprint:
        """Return the blueprint. Raises ``BlueprintError`` if anything is wrong with it."""
        if self.problems:
            raise BlueprintError(errors_among(self.problems))
        return self.blueprint


class Findings:
    """The problems that are found on the way to a draft: what is not possible is noted, and the way goes on."""

    def __init__(self) -> None:
        self._problems: list[Problem] = []
        self._whole = True

    @contextlib.contextmanager
    def at(self, where: str, *, among: Draft | None = None, wiring: bool = False) -> Iterator[None]:
        """Note what goes wrong inside, at a place.

        A module that is not there may be one that could not be read where ``among`` is not whole. ``wiring`` says
        that without what is done inside it is not known which modules there are, or how they are connected.
        """
        try:
            yield
        except UserError as error:
            found = problems_of(error, where)
            if isinstance(error, UnknownModuleError) and among is not None and not among.whole:
                found = tuple(_doubtful(problem) for problem in found)
            self.note(found, wiring=wiring)

    def note(self, problems: Iterable[Problem], *, wiring: bool) -> None:
        """Note problems; ``wiring`` as for ``at``."""
        found = list(problems)
        self._problems += found
        self._whole = self._whole and not (found and wiring)

    def draft(self, blueprint: Blueprint) -> Draft:
        """Return the draft of what could be read."""
        return Draft(blueprint, tuple(dict.fromkeys(self._problems)), self._whole)


def _doubtful(problem: Problem) -> Problem:
    return replace(problem, text=f"as far as it could be read, {problem.text}", severity="warning")
