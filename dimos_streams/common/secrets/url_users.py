"""Users and passwords in URLs: what a URL has before its host."""

from __future__ import annotations

import re

from dimos_streams.common.secrets.redaction import REDACTED

_HOST_AND_PORT = re.compile(r"[^@:]*(:[0-9]*)?|\[.*\](:[0-9]*)?")
_TO_LAST_AT = re.compile(r"://(\S*)@")
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


def cut_off(url: str, location: str) -> str:
    """The user and password of a URL whose ``location`` is no host: a password with ``#``, ``/`` or ``?`` in it, not
    escaped, ends what is before a host. Empty if nothing is cut off."""
    found = None if _HOST_AND_PORT.fullmatch(location) else _TO_LAST_AT.search(url)
    return found[1] if found else ""


def without_user(url: str) -> str:
    """A URL without what it has before its host."""
    return _USER_OF_URL.sub("", url)
