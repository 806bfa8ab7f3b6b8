"""The level from which on processes log, as the environment sets it."""

from __future__ import annotations

from collections.abc import Mapping

from dimos_streams.errors import UserError

_VARIABLE = "DIMOS_STREAMS_LOG_LEVEL"
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


def log_level(environment: Mapping[str, str]) -> str:
    """Return the name of the level, ``INFO`` if none is set. Raises ``UserError`` for one that does not exist."""
    given = environment.get(_VARIABLE, "INFO")
    if given.upper() not in _LEVELS:
        raise UserError(f"{_VARIABLE} is {given!r} in the environment; valid: {', '.join(_LEVELS)}")
    return given.upper()
