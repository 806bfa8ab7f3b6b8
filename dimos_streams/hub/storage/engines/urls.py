"""URLs of databases, as they may be shown: nothing before their last ``@``, and nothing of their query."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dimos_streams.common.secrets import REDACTED, redacted
from dimos_streams.errors import UserError

_TO_LAST_AT = re.compile(r"^([A-Za-z0-9+.-]*://)?.*@", re.DOTALL)
_BETWEEN = re.compile("[/:@?&=]+")


def shown(url: str) -> str:
    """The URL without user, password and query, whatever characters they have."""
    return _TO_LAST_AT.sub(r"\g<1>", url).partition("?")[0]


def check_user(url: str) -> None:
    """Raise ``UserError`` if user and password would end too early: what follows them would be told as the name of a
    host or a database."""
    user = url.partition("://")[2].rpartition("@")[0]
    if "/" in user or "@" in user:
        raise UserError(
            f"--database {shown(url)!r} has a '/' or '@' before its last '@': in users, passwords and values they are"
            " written %2F and %40"
        )


def without_parts(text: str, url: str) -> str:
    """A driver's words about a URL that it can't read, without the parts of the URL that may be secret."""
    rest = url.partition("://")[2]
    user, query = rest.rpartition("@")[0], rest.partition("?")[2]
    pieces = [user, query, *_BETWEEN.split(user), *_values(query)]
    for piece in sorted(filter(None, pieces), key=len, reverse=True):
        text = text.replace(f'"{piece}"', REDACTED)
    return redacted(text)


def _values(query: str) -> Iterable[str]:
    for field in query.split("&"):
        name, equals, value = field.partition("=")
        # A field without a value may be the rest of one that has a "&" in it.
        yield value if equals else name
