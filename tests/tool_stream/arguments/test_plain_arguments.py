"""Arguments of calls that Python code makes, as a request carries them."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from dimos_streams.errors import SkillArgumentError
from dimos_streams.tool_stream.arguments.plain_arguments import plain_arguments


@dataclasses.dataclass
class Goal:
    x: float
    steps: tuple[int, ...] = ()


def test_what_has_a_form_gets_it() -> None:
    assert plain_arguments("go", {"to": Goal(1.5, (1, 2)), "n": None, "each": (one for one in [1])}) == {
        "to": {"x": 1.5, "steps": [1, 2]}, "n": None, "each": [1],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        ({"x": math.nan, "y": -math.inf}, {"x": "a finite number (given: nan)", "y": "(given: -inf)"}),
        ({"to": Goal(math.inf)}, {"to.x": "it must be a finite number (given: inf)"}),
        ({"n": [10**400]}, {"n.0": "it must be a finite number (given: 1000"}),
        ({"x": np.float32(1), "y": math.nan}, {"x": "whose tolist() would do", "y": "(given: nan)"}),
    ],
)
def test_what_has_none_is_refused_by_its_name(arguments: dict[str, Any], problems: dict[str, str]) -> None:
    with pytest.raises(SkillArgumentError, match="skill 'go' cannot take these arguments: ") as error:
        plain_arguments("go", arguments)
    assert error.value.problems.keys() == problems.keys()
    assert all(text in error.value.problems[name] for name, text in problems.items())
