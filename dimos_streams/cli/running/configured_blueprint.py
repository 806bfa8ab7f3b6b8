"""A blueprint as a command uses it: found by its reference, with the settings of environment and command line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dimos_streams.cli.terminal.output import note
from dimos_streams.common.process.log_settings import log_bytes, log_level
from dimos_streams.common.secrets import know_settings, masked, telling_name

if TYPE_CHECKING:
    from dimos_streams.blueprint import Blueprint
    from dimos_streams.blueprint.files.draft import Draft


def configured_blueprint(reference: str, settings: list[str] | None) -> Blueprint:
    """Return the blueprint with the environment's and the command line's settings. Raises ``UserError``."""
    from dimos_streams.blueprint.load import drafted

    return configure(drafted(reference), settings).sound()


def configure(draft: Draft, settings: list[str] | None) -> Draft:
    """Return a draft with the environment's and the command line's settings. Raises ``UserError`` for a level or a
    size of logs that its processes would not take."""
    from dimos_streams.blueprint.settings import with_settings

    log_level(os.environ)
    log_bytes(os.environ, 0)
    draft = with_settings(draft, os.environ, settings or ())
    know_settings(draft.blueprint.model_dump())
    for assignment in settings or ():
        address, _, text = assignment.partition("=")
        if masked(text, telling_name(address.strip().split(".")[1:])) != text:
            note(f"--set {address} shows a secret in the list of processes, to every user; the environment does not")
    return draft


def refuse_draft(draft: Draft) -> None:
    """Raise ``BlueprintError`` with the errors that `check` finds, after its warnings; these alone are for who runs
    it."""
    from dimos_streams.blueprint.check import check_draft
    from dimos_streams.documents.problem import BlueprintError, errors_among

    problems = check_draft(draft)
    if errors := errors_among(problems):
        for problem in problems:
            if problem not in errors:
                note(str(problem))
        raise BlueprintError(errors)
