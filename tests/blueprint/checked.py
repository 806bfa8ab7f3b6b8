"""A blueprint with all that is wrong with it, its very form included."""

from __future__ import annotations

from dimos_streams.blueprint.check import check
from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.model import Blueprint
from dimos_streams.documents.problem import BlueprintError, Problem
from tests.blueprint.conftest import Write


def check_reference(reference: str) -> tuple[Blueprint | None, list[Problem]]:
    """The result of ``resolve`` and the problems of the blueprint; None in its place if its very form is wrong.

    Raises ``UserError`` if there is no blueprint to look at.
    """
    try:
        blueprint = resolve(reference)
    except BlueprintError as error:
        return None, list(error.problems)
    return blueprint, check(blueprint)


def found_in(write: Write, text: str) -> list[str]:
    """The problems of a blueprint's text, as they are shown."""
    return [str(problem) for problem in check_reference(write("x.yaml", text))[1]]
