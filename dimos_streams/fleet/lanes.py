"""The kinds of commands that don't keep each other waiting: what makes a robot stop has room of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from dimos_streams.fleet.commands import Role
from dimos_streams.fleet.paths import bare_path

Lane = Literal["safety", "models' cancels", "health", "others"]
"""The lane of a command, which others can't fill. ``safety`` is for what operators stop, release and cancel."""
MOST_AT_ONCE: Mapping[Lane, int] = {"safety": 16, "models' cancels": 16, "health": 16, "others": 64}
"""Maximum number of commands of one robot, in each lane, that wait at the hub or are carried out at the robot."""

_HEALTH = re.compile("/(healthz|robots)")
_CANCEL = re.compile("/calls/cancel|/calls/[^/?#]+/cancel")
_SAFETY = re.compile(rf"{_CANCEL.pattern}|/robots/(stop|release)")


def lane_of(method: str, path: str, role: Role) -> Lane:
    """The lane of a command; ``path`` may have a query."""
    bare = bare_path(path)
    if method == "GET":
        return "health" if _HEALTH.fullmatch(bare) else "others"
    if role == "operator":
        return "safety" if _SAFETY.fullmatch(bare) else "others"
    return "models' cancels" if _CANCEL.fullmatch(bare) else "others"
