"""The change of a hosted module's live settings, as a call that no model, skill or script can reach by its name.

It is a call so that it happens once and in order, and is journalled, recorded and replayed as any other. Only the
bridge begins it (``bridge/calls/settings/live_settings.py``): its module does not offer it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

from dimos_streams.common.json.reading import parse_json
from dimos_streams.common.json.writing import json_text
from dimos_streams.errors import DimosStreamsError, SettingsError
from dimos_streams.live_settings import (
    MAX_LIVE,
    STATE,
    Change,
    changes,
    reported_settings,
    shown_secrets,
    with_assignments,
)
from dimos_streams.module import MAX_STATE, Module, ModuleConfig
from dimos_streams.skill import SkillSpec, skill, skills_of

SET = "settings:set"
"""The name of the skill."""


def change_settings(module: Module, assignments: Mapping[str, str], *, only_check: bool = False) -> dict[str, Change]:
    """Change settings of a module, all or none, tell the module, and return what has changed.

    With ``only_check`` everything stays as it is, and the module is not asked. Raises ``SettingsError``.
    """
    before = module.config
    after = with_assignments(before, assignments)
    differences = {path: change.new for path, change in changes(module.configured, after).items()}
    changed = changes(before, after)
    problems = _problems(module, after) | shown_secrets(before, after, changed)
    size = len(json_text(differences).encode())
    if size > MAX_LIVE:
        problems[""] = f"what differs from the blueprint would have {size} bytes, {MAX_LIVE} are possible"
    if problems:
        raise SettingsError(problems)
    if changed and not only_check:
        _put(module, after, frozenset(changed))
        module.live_values = differences
        module.on_live()
        module.on_state()
    return changed


def restore_settings(module: Module, assignments: Mapping[str, str]) -> None:
    """Give a module that has not started yet the settings that an operator changed in an earlier life of it.

    If its code does not accept one of them any more, that is logged, and none of them holds.
    """
    try:
        after = with_assignments(module.config, assignments)
    except SettingsError as error:
        module.log.error("settings that were changed while it ran do not hold any more: %s", error)
    else:
        module.config = after
        module.live_values = {path: change.new for path, change in changes(module.configured, after).items()}


def as_assignments(values: Mapping[str, Any]) -> dict[str, str]:
    """Return values of settings as the texts that give them."""
    return {path: json.dumps(value) for path, value in values.items()}


def state_json(module: Module) -> str:
    """Return the state that a module reports, with its differences from the blueprint if there is room for both."""
    if not module.live_values:
        return module.state_json
    own = json.loads(module.state_json) if module.state_json else {}
    text = json.dumps({**own, STATE: module.live_values}, separators=(",", ":"), ensure_ascii=False)
    return text if len(text.encode()) <= MAX_STATE else module.state_json


def kept_assignments(state: str) -> dict[str, str]:
    """Return what differs from a module's blueprint according to the state that it reports, as the texts that assign
    it; empty if that says nothing of it, or can't be read."""
    try:
        reported = parse_json(state) if state else {}
    except ValueError:
        return {}
    return as_assignments(reported_settings(reported))


@functools.cache
def settings_skill() -> SkillSpec:
    """Return the skill that each hosted module has besides its own."""
    return skills_of(_SettingsSkill)[SET]


def _put(module: Module, config: ModuleConfig, changed: frozenset[str]) -> None:
    before, module.config = module.config, config
    try:
        module.on_settings(changed)
    except Exception as error:
        module.config = before
        if isinstance(error, SettingsError):
            raise
        if not isinstance(error, DimosStreamsError | ValueError):
            module.log.exception("on_settings of %r failed", module.name)
        text = str(error) or type(error).__name__
        raise SettingsError({"": f"module {module.name!r} refuses: {text}"}) from error


def _problems(module: Module, config: ModuleConfig) -> dict[str, str]:
    """The faults that a module finds in a config, by setting; a failure of its author's check is one, too."""
    try:
        return {".".join(map(str, path)): str(text) for path, text in type(module).problems(config)}
    except Exception as error:
        module.log.exception("problems(config) of %r failed", module.name)
        return {"": f"module {module.name!r}: its problems(config) fails ({type(error).__name__}: {error})"}


class _SettingsSkill(Module):
    """The owner of the skill, which is run with the hosted module as ``self``."""

    @skill(audience="operator", name=SET)
    async def change(self, assignments: dict[str, str], only_check: bool = False) -> dict[str, Any]:
        """Change live settings."""
        changed = change_settings(self, assignments, only_check=only_check)
        return {path: change._asdict() for path, change in changed.items()}
