"""The settings of logs in the environment: what processes log, and how much of it is kept."""

from __future__ import annotations

from collections.abc import Mapping

from dimos_streams.errors import UserError

_LEVEL, _SIZE = "DIMOS_STREAMS_LOG_LEVEL", "DIMOS_STREAMS_LOG_MB"
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_LEAST, _MOST = 1, 1_000_000
_MB = 1024 * 1024


def log_level(environment: Mapping[str, str]) -> str:
    """Return the name of the level, ``INFO`` if none is set. Raises ``UserError`` for one that does not exist."""
    given = environment.get(_LEVEL, "INFO")
    if given.upper() not in _LEVELS:
        raise UserError(f"{_LEVEL} is {given!r} in the environment; valid: {', '.join(_LEVELS)}")
    return given.upper()


def log_bytes(environment: Mapping[str, str], otherwise: int) -> int:
    """Return the maximum size of each of a log's two files, in bytes, ``otherwise`` if none is set. Raises
    ``UserError`` for an invalid value."""
    given = environment.get(_SIZE)
    if given is None:
        return otherwise
    if not (given.isascii() and given.isdecimal() and _LEAST <= int(given[:20]) <= _MOST):
        raise UserError(f"{_SIZE} is {given!r} in the environment; valid: a whole number of MB, {_LEAST} to {_MOST}")
    return int(given) * _MB
