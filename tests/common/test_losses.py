"""What has no JSON form is named by where it is, and by what would do."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from dimos_streams.common.json.writing import json_text
from dimos_streams.errors import SkillError


async def answer() -> int:
    return 1


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (object(), "unknown type: <class 'object'>; valid: texts,"),
        ({"a": {"b": [1, object()]}}, "unknown type: <class 'object'> (at a.b.1); valid: texts,"),
        (np.float32(1), "unknown type: <class 'numpy.float32'>, whose tolist() would do; valid: "),
        ({"at": np.zeros(2)}, "unknown type: <class 'numpy.ndarray'> (at at), whose tolist() would do; valid: "),
        (b"\xff", "not JSON: 'utf-8' codec can't decode byte 0xff"),
    ],
)
def test_a_part_without_a_form_is_named(value: Any, said: str) -> None:
    with pytest.raises(SkillError) as error:
        json_text(value)
    assert said in str(error.value)


def test_what_nobody_has_awaited_is_told_so() -> None:
    forgotten = answer()
    with pytest.raises(SkillError, match=r"'coroutine'> \(at x\), which nobody has awaited: put `await` before it;"):
        json_text({"x": forgotten})
    assert asyncio.run(forgotten) == 1
