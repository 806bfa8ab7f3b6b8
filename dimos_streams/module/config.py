"""Configs of modules, and what may be wrong with them."""

from __future__ import annotations

import functools
import typing
from typing import Any, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator, model_validator

from dimos_streams.common.schemas.flags import refuse_flags
from dimos_streams.common.secrets import know_settings


class ModuleConfig(BaseModel):
    """Base of modules' configs: pydantic, frozen, and a key that it does not know is an error. So are infinity and
    NaN, which would switch off whatever they bound, and a default that the setting would refuse.

    A field of type ``SecretStr``, or with a name like ``token``, ``camera_password`` or ``api_key``, is a secret: its
    value is redacted in all that leaves the process, and ``config`` does not show it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True)

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_flags(cls, value: Any, info: ValidationInfo) -> Any:
        assert info.field_name is not None
        refuse_flags(cls.model_fields[info.field_name].annotation, value)
        return value

    @model_validator(mode="after")
    def _know_secrets(self) -> Self:
        know_settings(self.model_dump())
        return self


class OfRobot:
    """Marks a setting that says what the robot is like: ``robot_radius: Annotated[float, OfRobot] = 0.22``.

    Modules of one robot that have such a setting under one name mean the same by it; ``check`` warns where they
    differ.
    """


class ConfigFault(NamedTuple):
    """A fault of a config, and the path to the setting."""

    path: tuple[str, ...]
    text: str


@functools.cache
def declared_config(owner: Any) -> type[ModuleConfig]:
    """The class that annotates ``config`` in a class. Raises ``TypeError`` if that is not a ``ModuleConfig``."""
    try:
        annotation = typing.get_type_hints(owner)["config"]
    except Exception as error:  # it may be any expression
        raise TypeError(f"{owner.__name__}: an annotation can't be resolved: {error}") from error
    if not (isinstance(annotation, type) and issubclass(annotation, ModuleConfig)):
        raise TypeError(f"{owner.__name__}.config must be annotated with a ModuleConfig, not {annotation!r}")
    return annotation
