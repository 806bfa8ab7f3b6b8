"""The forms of blueprint files: which keys there are, and what each may hold."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from dimos_streams.blueprint.model import Restart
from dimos_streams.bus.delivery import Delivery
from dimos_streams.common.schemas.frozen_model import FrozenModel


class KeyedForm(FrozenModel):
    """A mapping in the file. A known key without a value counts as left out."""

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if value is not None or key not in cls.model_fields}


class ReplacementForm(KeyedForm):
    """A module in the place of another one."""

    type: str
    config: dict[str, Any] = Field(default_factory=dict)
    remap: dict[str, str | None] = Field(default_factory=dict)
    process: str | None = None
    restart: Restart = "on-failure"
    machine: str | None = None


class ModuleForm(ReplacementForm):
    """A module."""

    namespace: str = ""


class IncludeForm(KeyedForm):
    """Another blueprint, and how it is changed."""

    blueprint: str
    namespace: str = ""
    without: list[str] = Field(default_factory=list)
    replace: dict[str, ReplacementForm] = Field(default_factory=dict)
    types: dict[str, str] = Field(default_factory=dict)
    processes: dict[str, str | None] = Field(default_factory=dict)
    remap: dict[str, str | None] = Field(default_factory=dict)
    set: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, data: Any) -> Any:
        return {"blueprint": data} if isinstance(data, str) else data


class FileForm(KeyedForm):
    """The whole file. Includes and modules have forms of their own, so that one may be wrong beside others."""

    name: str = ""
    description: str = ""
    include: list[Any] = Field(default_factory=list)
    modules: dict[str, Any] = Field(default_factory=dict)
    external: list[str] = Field(default_factory=list)
    delivery: dict[str, Delivery] = Field(default_factory=dict)
    machines: dict[str, list[str]] = Field(default_factory=dict)
