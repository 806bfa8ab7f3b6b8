"""Errors of PostgreSQL in a line each, with what can be done where that is known."""

from __future__ import annotations

from dimos_streams.common.secrets import redacted

_ALLOWED_BY = {
    "too many connections for role": "ALTER ROLE … CONNECTION LIMIT",
    "too many connections for database": "ALTER DATABASE … CONNECTION LIMIT",
    "too many clients": "max_connections of the server",
    "remaining connection slots": "max_connections of the server",
}
"""What allows how many connections, by what a server says that refuses one; its code is not told where one begins."""


def error_line(error: Exception) -> str:
    """Return an error's text in a line, without secrets; where connections are used up, with what allows more,
    and where others are waited for, with how they are found."""
    text = redacted(" ".join(str(error).split())) or type(error).__name__
    for said, allowed_by in _ALLOWED_BY.items():
        if said in text:
            return (
                f"{text}: each process of a hub needs ten, and each command beside it (`hub robots`, `hub migrate`)"
                f" one more; allow so many ({allowed_by}), or end others (pg_stat_activity lists them)"
            )
    if "lock timeout" in text:
        return f"{text}: others hold what it waits for; pg_stat_activity lists those whose transactions go on"
    return text
