"""A blueprint with all that is wrong with it, its very form included."""

from __future__ import annotations

from dimos_streams.blueprint.check import check_draft
from dimos_streams.blueprint.load import drafted
from dimos_streams.blueprint.model import Blueprint
from dimos_streams.documents.problem import BlueprintError, Problem
from tests.blueprint.conftest import Write


def check_reference(reference: str) -> tuple[Blueprint | None, list[Problem]]:
    """What could be read of the blueprint of a reference, and its problems; None in its place if nothing could.

    Raises ``UserError`` if there is no blueprint to look at.
    """
    try:
        draft = drafted(reference)
    except BlueprintError as error:
        return None, list(error.problems)
    return draft.blueprint, check_draft(draft)


def found_in(write: Write, text: str) -> list[str]:
    """The problems of a blueprint's text, as they are shown."""
    return [str(problem) for problem in check_reference(write("x.yaml", text))[1]]
