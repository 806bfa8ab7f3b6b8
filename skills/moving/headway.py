"""The way that a blocked motion has covered, in words."""

from __future__ import annotations

import math


def blocked_text(done: float, asked: float, unit: str, digits: int) -> str:
    """Return where on its way, or beside it, a motion was blocked."""
    ahead, way = round(done * math.copysign(1.0, asked), digits), abs(asked)
    if ahead > way:
        return f"blocked {ahead - way:.{digits}f} {unit} past the {asked:g} {unit} asked for"
    if ahead < 0.0:
        return f"blocked after {-ahead:.{digits}f} {unit} the other way, of {asked:g} {unit}"
    return f"blocked after {round(done, digits) + 0.0:.{digits}f} of {asked:g} {unit}"  # no -0.0
