"""A setting that is a pair of numbers: the least value and the greatest one."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator


def _in_order(bounds: tuple[float, float]) -> tuple[float, float]:
    least, greatest = bounds
    if least > greatest:
        raise ValueError(f"the least value, {least:g}, is more than the greatest, {greatest:g}")
    return bounds


Bounds = Annotated[tuple[float, float], AfterValidator(_in_order)]
"""The least and the greatest value; nothing could lie between them the other way round."""
