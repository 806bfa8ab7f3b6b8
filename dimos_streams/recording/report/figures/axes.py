"""Places of numbers on a drawing, and round numbers for its axes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Axis:
    """A range of numbers along a range of the drawing."""

    low: float
    high: float
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        """The place of a number on the drawing."""
        span = self.high - self.low
        return self.begin + (value - self.low) / span * (self.end - self.begin) if span else self.begin

    def ticks(self, about: int) -> Iterator[float]:
        """Yield round numbers in the range, approximately ``about`` of them."""
        step = round_step((self.high - self.low) / max(1, about))
        for index in range(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1):
            yield index * step


_LEAST = 1e-300
"""Steps between smaller numbers could be zero."""


def round_step(rough: float) -> float:
    """1, 2 or 5 times a power of ten, not less than ``rough``."""
    if not rough > _LEAST:
        return _LEAST if rough > 0 else 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    return next((step * power for step in (1.0, 2.0, 5.0) if step * power >= rough * (1 - 1e-9)), 10.0 * power)


_TIME_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400)


def time_ticks(span_s: float, about: int) -> list[float]:
    """Return the seconds from 0 to ``span_s`` at which people look at a clock."""
    step = next((step for step in _TIME_STEPS if span_s / step <= about), 86400.0 * max(1, round(span_s / 864000)))
    return [index * step for index in range(int(span_s / step + 1e-9) + 1)]


def clock_text(seconds: float) -> str:
    """``"0:07.5"``, ``"12:03"``, ``"1:02:03"``."""
    tenths = round(seconds * 10)
    whole, tenth = divmod(tenths, 10)
    hours, minutes = divmod(whole // 60, 60)
    text = f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
    return f"{text}.{tenth}" if tenth else text
