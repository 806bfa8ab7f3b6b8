"""An operator's change of live settings."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field

from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.common.schemas.json_model import JsonModel
from dimos_streams.operator.known_names import HTTP
from dimos_streams.operator.messages.message import MAX_TEXT, Name

_MAX_ASSIGNMENTS = 100
_Assignment = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]


class SettingsOrder(JsonModel, defer_build=False):
    """Body of ``POST /settings``."""

    assignments: Annotated[tuple[_Assignment, ...], Field(min_length=1, max_length=_MAX_ASSIGNMENTS)]
    """Each ``module.setting=value``, with the value as YAML; all of them hold or none."""
    caller: Name = HTTP


class SettingChange(FrozenModel):
    """A setting that has changed."""

    module: str
    setting: str
    """The name of the setting, with dots between nested ones."""
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.module}.{self.setting}: {_shown(self.old)} → {_shown(self.new)}"


class SettingsReport(FrozenModel):
    """The settings that an order has changed; those that had the value already are not among them."""

    changes: tuple[SettingChange, ...]

    def __str__(self) -> str:
        return "; ".join(map(str, self.changes)) or "nothing has changed: the settings are so already"


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
