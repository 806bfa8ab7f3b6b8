"""Paths that were typed behind a ``=``, where no shell puts the user's directory for ``~``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dimos_streams.common.process.disk import at_home


def with_home_paths(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command that gets the user's directory for ``~`` in each path that it is given."""

    @functools.wraps(command)
    def take(**given: Any) -> Any:
        return command(**{name: _at_home(value) for name, value in given.items()})

    return take


def _at_home(value: Any) -> Any:
    if isinstance(value, Path):
        return at_home(value)
    return list(map(_at_home, value)) if isinstance(value, list) else value
