"""Keeps what the operator has set: nothing may begin, nor the robot move, because the agent has died."""

from __future__ import annotations

from collections.abc import Callable

from dimos_streams.agent.control.control import Control, Mode
from dimos_streams.agent.policies.gates.enabled import EnabledGate
from dimos_streams.agent.resumption.state import OperatorSettings
from dimos_streams.errors import SkillError, UserError


def keep_settings(
    settings: OperatorSettings,
    control: Control,
    enabled: EnabledGate,
    *,
    model: str,
    use_model: Callable[[str], None],
) -> None:
    """Set everything as it was. ``model`` is the name of the one that is asked; ``use_model`` replaces it."""
    if settings.outdated:
        control.pause("an operator's order before the restart could not be written down, so nobody knows what holds")
    elif settings.mode is Mode.PAUSED:
        control.pause(settings.paused_for or "as it was when the agent was restarted")
    elif settings.mode is Mode.STEPPING:
        control.step_mode()
    for skill, is_enabled in settings.skills.items():
        _keep_set(skill, is_enabled, control, enabled)
    if settings.model and settings.model != model:
        _keep_model(settings.model, control, use_model)


def _keep_set(skill: str, is_enabled: bool, control: Control, enabled: EnabledGate) -> None:
    """Keep a skill enabled or disabled. If it can't be, because the config disables many, nothing begins."""
    try:
        enabled.set(skill, is_enabled)
    except SkillError as error:
        control.pause(f"what the operator has set can't be kept: {error}")


def _keep_model(model: str, control: Control, use_model: Callable[[str], None]) -> None:
    """Keep the model that the operator chose. If it can't be asked any more, nothing begins: it is not replaced by
    one that they did not choose."""
    try:
        use_model(model)
    except UserError as error:
        control.pause(f"the model that was chosen, {model!r}, can't be asked any more: {error}")
