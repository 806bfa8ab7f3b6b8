"""The secrets that this process knows, and the texts and data without them."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from dimos_streams.common.secrets.redaction import REDACTED, SHORTEST, Redaction
from dimos_streams.common.secrets.url_users import cut_off, has_user, may_have_user, users_redacted

VARIABLES = ("OPENAI_API_KEY", "DIMOS_STREAMS_TOKEN")
"""The names of environment variables that are secrets, besides URLs with a password."""

_TO_LAST_AT = re.compile(r"^([A-Za-z0-9+.-]*:/*)?.*@", re.DOTALL)

_logger = logging.getLogger(__name__)
_process = Redaction()


def know(secret: str | None, where: str = "") -> None:
    """Redact a secret from now on. A secret that is too short for that is logged with ``where`` it is from."""
    if secret and not _process.add(secret) and where:
        _logger.warning("%s has fewer than %d characters: texts that contain it are not redacted", where, SHORTEST)


def know_url(url: str) -> None:
    """Redact what a URL has before its host: a password, its user with it, or a name alone, which then is a token,
    unless the URL's own scheme has it, as ``postgresql`` has ``postgres``."""
    try:
        scheme, location, *_ = urlsplit(url)
    except ValueError:  # it is no URL
        return
    user_info = location.rpartition("@")[0] or cut_off(url, location)
    for form in (user_info, unquote(user_info)):
        user, colon, password = form.partition(":")
        for secret in (form, password if colon else user):
            if colon or secret not in scheme:
                know(secret)


def know_environment(environment: Mapping[str, str]) -> None:
    """Redact the secrets of a process's environment."""
    for name, value in environment.items():
        if name in VARIABLES:
            know(value)
        elif may_have_user(value):
            know_url(value)


def is_known(text: str) -> bool:
    """Return whether a whole text is a secret of this process."""
    return _process.has(text)


def redacted(text: str) -> str:
    """The text with ``[redacted]`` in place of each secret of this process, and of users and passwords in any URL."""
    return _process.redacted(users_redacted(text))


def has_secret(text: str) -> bool:
    """Return whether a text has anything in it that ``redacted`` takes out."""
    return has_user(text) or bool(_process.spans(text))


def redacted_data(value: Any) -> Any:
    """Plain data with every text redacted, keys included, and ``[redacted]`` for a number that is a secret itself."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {redacted(key) if isinstance(key, str) else key: redacted_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted_data(item) for item in value]
    return REDACTED if isinstance(value, (int, float)) and is_known(str(value)) else value


def redacted_values(value: Any, names: Collection[str] = ()) -> Any:
    """Plain data with every value redacted, but not keys and texts that are ``names``: programs find things by these,
    and a secret may be a word of them."""
    if isinstance(value, Mapping):
        return {key: redacted_values(item, names) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted_values(item, names) for item in value]
    return value if isinstance(value, str) and value in names else redacted_data(value)


def unreadable_url(url: str, options: Iterable[str] = ()) -> str:
    """A URL that can't be read, as it may be shown: without anything before its last ``@``, as a password may have
    characters in it that end what is before a host, and of its query only ``options``, which are no secrets, and
    nothing of its fragment."""
    bare, mark, query = _TO_LAST_AT.sub(rf"\g<1>{REDACTED}@", url).partition("?")
    bare, hash_sign, fragment = bare.partition("#")
    bare += hash_sign + (REDACTED if fragment else "")
    shown = [field if field.partition("=")[0] in options else _without_value(field) for field in query.split("&")]
    return redacted(bare + mark + "&".join(shown))


def _without_value(field: str) -> str:
    name, equals, value = field.partition("=")
    return f"{name}={REDACTED if value else ''}" if equals else REDACTED if field else ""


class RedactedPieces:
    """Redacts a text that comes in pieces; a secret may be spread over several of them."""

    def __init__(self) -> None:
        self._waiting = ""
        self._redacted_ahead = 0
        """The number of characters, at the beginning of what waits, of a secret already replaced in the output."""

    def add(self, piece: str) -> str:
        """Return the next piece, but for an end that may be the beginning of a secret: it waits for what follows."""
        text = self._waiting + piece
        return self._until(text, len(text) - _process.begun(text))

    def rest(self) -> str:
        """The text that still waited at the end."""
        return self._until(self._waiting, len(self._waiting))

    def _until(self, text: str, cut: int) -> str:
        kept, at = [], 0
        for begin, end in _process.spans(text, [(0, self._redacted_ahead)] if self._redacted_ahead else []):
            goes_on = self._redacted_ahead > 0 and begin == 0
            if begin >= cut and not goes_on:
                break
            kept += [text[at:begin], "" if goes_on else REDACTED]
            at = end
        kept.append(text[at:cut])
        self._waiting, self._redacted_ahead = text[cut:], max(0, at - cut)
        return "".join(kept)
