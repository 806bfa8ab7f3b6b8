"""What a module's config refuses, whatever pydantic would make of it."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import Field, ValidationError

from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.errors import SettingsError
from dimos_streams.live_settings import Live, with_assignments
from dimos_streams.module import ModuleConfig


class Limits(FrozenModel):
    """Settings within a setting."""

    deadline_s: float | None = None
    strict: bool = False


class KettleConfig(ModuleConfig):
    """Settings of each kind that may meet true and false."""

    warm_c: Annotated[float, Live] = 60.0
    cups: Annotated[int, Field(ge=0)] = 1
    lid: bool | float = True
    limits: Limits = Limits()
    steps: tuple[float, ...] = ()
    place: tuple[float, float] = (0.0, 0.0)
    by_name: dict[str, list[Limits]] = Field(default_factory=dict)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"warm_c": True}, "it must be a number, not true"),
        ({"cups": False}, "it must be a number, not false"),
        ({"steps": [1.0, True]}, "1: it must be a number, not true"),
        ({"place": [True, 2]}, "0: it must be a number, not true"),
        ({"by_name": {"a": [{"deadline_s": False}]}}, "a: 0: deadline_s: it must be a number, not false"),
        ({"limits": {"deadline_s": True}}, "deadline_s: it must be a number, not true"),
    ],
)
def test_true_and_false_are_no_numbers(given: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        KettleConfig.model_validate(given)


def test_they_are_what_they_are_where_they_may_be_given() -> None:
    config = KettleConfig.model_validate({"lid": False, "limits": {"strict": True, "deadline_s": 5}})
    assert (config.lid, config.limits.strict, config.limits.deadline_s) == (False, True, 5.0)


def test_nor_are_they_while_it_runs() -> None:
    with pytest.raises(SettingsError, match="it must be a number, not true"):
        with_assignments(KettleConfig(), {"warm_c": "true"})
