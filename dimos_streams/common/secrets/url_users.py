"""Users and passwords in URLs: what a URL has before its host."""

from __future__ import annotations

import re

from dimos_streams.common.secrets.redaction import REDACTED

_USER_OF_URL = re.compile(r"(?<=://)[^\s/?#\"'<>]+@")


def may_have_user(text: str) -> bool:
    """Return whether a text can have a URL with a user in it; cheaper than a search for one."""
    return "@" in text and "://" in text


def has_user(text: str) -> bool:
    """Return whether a URL with a user is in a text."""
    return may_have_user(text) and _USER_OF_URL.search(text) is not None


def users_redacted(text: str) -> str:
    """The text with ``[redacted]`` in place of users and passwords in any URL."""
    return _USER_OF_URL.sub(f"{REDACTED}@", text) if may_have_user(text) else text


def without_user(url: str) -> str:
    """A URL without what it has before its host."""
    return _USER_OF_URL.sub("", url)
