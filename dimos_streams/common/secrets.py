"""The secrets of this process, and the one redaction: what they are replaced by wherever text enters or leaves.

A process knows a secret from the moment at which it is given one: the keys of models and the bridge's token, what a
URL has before its host, and the settings whose type or name says that they are secret.
"""

from __future__ import annotations

import base64
import functools
import html
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable
from urllib.parse import quote, quote_plus, unquote, urlsplit

from dimos_streams.common.readable.unescaping import Origins, unescaped
from dimos_streams.errors import UserError

REDACTED = "[redacted]"
SHORTEST = 6
"""Minimum length of a secret, in characters: shorter ones are in too many harmless words to be looked for."""
VARIABLES = ("OPENAI_API_KEY", "DIMOS_STREAMS_TOKEN")
"""The names of environment variables that are secrets, besides URLs with a password."""

_SECRET = "secret"
_SECRET_NAME = re.compile(r"(token|password|passwd|passphrase|secret|api_?key|credentials?|authorization)$", re.I)
_USER_OF_URL = re.compile(r"(?<=://)[^\s/?#\"'<>]+@")
_TO_LAST_AT = re.compile(r"^([A-Za-z0-9+.-]*:/*)?.*@", re.DOTALL)
_LINE_ENDS = "\r\n"
_VISIBLE = re.compile(r"[!-~]+")
_MOST_ESCAPED = 2
"""Maximum number of times that a secret may be escaped and is found all the same."""
_Span = tuple[int, int]

_logger = logging.getLogger(__name__)


@runtime_checkable
class _Secret(Protocol):
    """Pydantic's ``SecretStr`` and ``SecretBytes``, whose import would make every command wait."""

    def get_secret_value(self) -> Any: ...


class Redaction:
    """Secrets, and all forms in which they are looked for: as they are, escaped as in JSON, Python, URLs and HTML,
    and in the middle of anything in base64. In a whole text any of their characters may be escaped, and escapes
    themselves twice."""

    def __init__(self) -> None:
        self._forms: frozenset[str] = frozenset()
        self._beginnings: set[str] = set()
        self._longest = 0

    def add(self, secret: str) -> bool:
        """Look for a secret from now on; return False if it is too short for that."""
        if len(secret) < SHORTEST:
            return False
        if secret not in self._forms:
            new = {form for form in _forms(secret) if len(form) >= SHORTEST}
            self._beginnings.update(form[:end] for form in new for end in range(1, len(form)))
            self._longest = max(self._longest, *map(len, new))
            self._forms |= new
        return True

    def has(self, text: str) -> bool:
        """Return whether a whole text is a secret."""
        return text in self._forms

    def spans(self, text: str, also: Iterable[_Span] = ()) -> list[_Span]:
        """The spans of secrets in a text, in order; those that overlap are one. ``also`` are further such spans."""
        if not self._forms and not also:  # events ask for each of their texts
            return []
        found = sorted([*also, *self._places(text)])
        merged: list[_Span] = []
        for begin, end in found:
            if merged and begin < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((begin, end))
        return merged

    def _places(self, text: str, escaped: int = _MOST_ESCAPED) -> Iterator[_Span]:
        """Yield the spans of all forms in a text, also where they are escaped up to so many times."""
        for form in self._forms:
            yield from _places(form, text)
        plain = unescaped(text) if escaped else None
        spans = [] if plain is None else list(self._places(plain, escaped - 1))
        if spans:
            origins = Origins(text)
            yield from ((origins[begin], origins[end]) for begin, end in spans)

    def redacted(self, text: str) -> str:
        """The text without secrets."""
        spans = self.spans(text)
        if not spans:
            return text
        kept, at = [], 0
        for begin, end in spans:
            kept += [text[at:begin], REDACTED]
            at = end
        return "".join([*kept, text[at:]])

    def begun(self, text: str) -> int:
        """The number of characters at the end of a text that may be the beginning of a secret."""
        for length in range(min(len(text), self._longest - 1), 0, -1):
            if text[-length:] in self._beginnings:
                return length
        return 0


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
    user_info = location.rpartition("@")[0]
    for form in (user_info, unquote(user_info)):
        user, colon, password = form.partition(":")
        for secret in (form, password if colon else user):
            if colon or secret not in scheme:
                know(secret)


def know_settings(value: Any, name: str = "") -> None:
    """Redact what is secret among settings: by its type, by its name or that of what it is in, or before the host of
    a URL."""
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        if is_secret(name):
            know(str(value))
    elif isinstance(value, str):
        if is_secret(name):
            know(value)
            know(value.rpartition(" ")[2])  # "Bearer …"
        if _has_user(value):
            know_url(value)
    elif isinstance(value, Mapping):
        inside = is_secret(name)
        for key, item in value.items():
            know_settings(item, name if inside else str(key))
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            know_settings(item, name)
    elif isinstance(value, bytes):
        know_settings(value.decode(errors="replace"), name)
    elif isinstance(value, _Secret):
        know_settings(value.get_secret_value(), _SECRET)


def know_environment(environment: Mapping[str, str]) -> None:
    """Redact the secrets of a process's environment."""
    for name, value in environment.items():
        if name in VARIABLES:
            know(value)
        elif _has_user(value):
            know_url(value)


def redacted(text: str) -> str:
    """The text with ``[redacted]`` in place of each secret of this process, and of users and passwords in any URL."""
    return _process.redacted(users_redacted(text))


def users_redacted(text: str) -> str:
    """The text with ``[redacted]`` in place of users and passwords in any URL."""
    return _USER_OF_URL.sub(f"{REDACTED}@", text) if _has_user(text) else text


def has_secret(text: str) -> bool:
    """Return whether a text has anything in it that ``redacted`` takes out."""
    if _has_user(text) and _USER_OF_URL.search(text):
        return True
    return bool(_process.spans(text))


def redacted_data(value: Any) -> Any:
    """Plain data with the same done to every text, keys included, and to a number that is a secret itself."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {redacted(key) if isinstance(key, str) else key: redacted_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted_data(item) for item in value]
    return REDACTED if isinstance(value, (int, float)) and _process.has(str(value)) else value


def masked(value: Any, name: str = "") -> Any:
    """Return settings as they may be shown, with ``[redacted]`` for whatever a type, a name or the name of what it is
    in says is secret."""
    if isinstance(value, Mapping):
        items = ((key, masked(item, telling_name((name, key)))) for key, item in value.items())
        return {redacted(key) if isinstance(key, str) else key: item for key, item in items}
    if isinstance(value, _Secret) or is_secret(name):
        return REDACTED if value else value
    if isinstance(value, list | tuple):
        return [masked(item, name) for item in value]
    return redacted_data(value)


def has_secret_setting(value: Any, name: str = "") -> bool:
    """Return whether settings have anything in them that ``masked`` takes out."""
    if isinstance(value, Mapping):
        return any(has_secret(str(key)) or has_secret_setting(value[key], telling_name((name, key))) for key in value)
    if isinstance(value, _Secret) or is_secret(name):
        return bool(value)
    if isinstance(value, list | tuple | set | frozenset):
        return any(has_secret_setting(item, name) for item in value)
    return has_secret(value) if isinstance(value, str) else _process.has(str(value))


def telling_name(path: Iterable[object]) -> str:
    """Return the name in the path to a setting that tells whether it is secret: what is inside of something secret is
    secret, whatever its own name."""
    names = [str(name) for name in path]
    return next(filter(is_secret, names), names[-1] if names else "")


@functools.lru_cache(maxsize=1000)  # each setting of each config asks
def is_secret(name: str) -> bool:
    """Return whether a setting's name says that its value is secret: ``token``, ``camera_password``, ``api_key``."""
    return _SECRET_NAME.search(name) is not None


def without_user(url: str) -> str:
    """A URL without what it has before its host."""
    return _USER_OF_URL.sub("", url)


def unreadable_url(url: str, options: Iterable[str] = ()) -> str:
    """A URL that can't be read, as it may be shown: without anything before its last ``@``, as a password may have
    characters in it that end what is before a host, and of its query only ``options``, which are no secrets."""
    bare, mark, query = _TO_LAST_AT.sub(rf"\g<1>{REDACTED}@", url).partition("?")
    shown = [field if field.partition("=")[0] in options else _without_value(field) for field in query.split("&")]
    return redacted(bare + mark + "&".join(shown))


def checked(secret: str, where: str) -> str:
    """A secret that can be sent in a header. Raises ``UserError`` that names where it is from, and not the secret."""
    if _VISIBLE.fullmatch(secret):
        return secret
    if not secret:
        what = "is empty"
    elif secret != secret.strip():
        verb, edge = ("ends", secret[-1]) if secret[-1].isspace() else ("begins", secret[0])
        what = f"{verb} with {'a line end' if edge in _LINE_ENDS else 'a blank'}"
    else:
        what = "has characters that are no visible ASCII"
    raise UserError(f"{where} {what}; valid: visible ASCII characters without spaces")


def _without_value(field: str) -> str:
    name, equals, value = field.partition("=")
    return f"{name}={REDACTED if value else ''}" if equals else REDACTED if field else ""


def _has_user(text: str) -> bool:
    return "@" in text and "://" in text


def _places(form: str, text: str) -> Iterator[_Span]:
    at = text.find(form)
    while at >= 0:
        yield at, at + len(form)
        at = text.find(form, at + 1)


def _forms(secret: str) -> set[str]:
    in_json = json.dumps(secret)[1:-1]
    texts = {secret, in_json, json.dumps(in_json)[1:-1], in_json.replace("/", "\\/")}
    texts |= {repr(secret)[1:-1], repr(f"'{secret}")[2:-1], html.escape(secret), html.escape(secret, quote=False)}
    for in_url in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        texts |= {in_url, re.sub("%..", lambda match: match[0].lower(), in_url)}
    return texts | set(_in_base64(secret.encode("utf-8", "surrogatepass")))


def _in_base64(secret: bytes) -> Iterator[str]:
    """The part that every base64 text contains that stands for something with the secret in its middle."""
    for before in range(3):
        first, last = -(-8 * before // 6), 8 * (before + len(secret)) // 6
        core = base64.b64encode(bytes(before) + secret).decode()[first:last]
        yield core
        yield core.replace("+", "-").replace("/", "_")
