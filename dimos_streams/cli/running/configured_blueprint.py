"""A blueprint as a command uses it: found by its reference, with the settings of environment and command line."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from dimos_streams.cli.terminal.output import note
from dimos_streams.common.process.log_level import log_level
from dimos_streams.common.secrets import know_settings, masked, telling_name

if TYPE_CHECKING:
    from dimos_streams.blueprint import Blueprint


def configured_blueprint(
    reference: str, settings: list[str] | None, change: Callable[[Blueprint], Blueprint] = lambda blueprint: blueprint
) -> Blueprint:
    """Return the blueprint with the environment's and the command line's settings. Raises ``UserError``,
    also for a level of logs that its processes would not take.

    ``change`` is made before the settings, which may be about what it adds.
    """
    from dimos_streams.blueprint.load import resolve
    from dimos_streams.blueprint.settings import apply_settings

    log_level(os.environ)
    blueprint = apply_settings(change(resolve(reference)), os.environ, settings or ())
    know_settings(blueprint.model_dump())
    for assignment in settings or ():
        address, _, text = assignment.partition("=")
        if masked(text, telling_name(address.strip().split(".")[1:])) != text:
            note(f"--set {address} shows a secret in the list of processes, to every user; the environment does not")
    return blueprint
