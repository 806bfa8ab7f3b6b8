"""Settings of the detector that nothing can fit."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import ValidationError

from dimos_streams.common.invalid import first_problem
from dimos_streams.perception.config import DetectorConfig


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"hog": {"chest": [2, 1]}}, "hog.chest: the least value, 2, is more than the greatest, 1"),
        ({"hog": {"min_height": 3}}, "hog: min_height, 3, is more than max_height, 1.9"),
        ({"hog": {"threshold": math.nan}}, "hog.threshold: it must be a finite number"),
        ({"tracking": {"memory_s": math.inf}}, "tracking.memory_s: it must be a finite number"),
        ({"mount": {"x": math.nan}}, "mount.x: it must be a finite number"),
    ],
)
def test_settings_that_nothing_can_fit_or_that_bound_nothing_are_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ValidationError) as refused:
        DetectorConfig.model_validate(settings)
    assert first_problem(refused.value, "it") == text
