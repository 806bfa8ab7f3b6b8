"""Secrets among settings: by their type, by their name or that of what they are in, or before the host of a URL."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from dimos_streams.common.secrets.known import has_secret, is_known, know, know_url, redacted, redacted_data
from dimos_streams.common.secrets.redaction import REDACTED
from dimos_streams.common.secrets.url_users import may_have_user

_SECRET = "secret"
_SECRET_NAME = re.compile(r"(token|password|passwd|passphrase|secret|api_?key|credentials?|authorization)$", re.I)


@runtime_checkable
class _Secret(Protocol):
    """Pydantic's ``SecretStr`` and ``SecretBytes``, whose import would make every command wait."""

    def get_secret_value(self) -> Any: ...


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
        if may_have_user(value):
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
    return has_secret(value) if isinstance(value, str) else is_known(str(value))


def telling_name(path: Iterable[object]) -> str:
    """Return the name in the path to a setting that tells whether it is secret: what is inside of something secret is
    secret, whatever its own name."""
    names = [str(name) for name in path]
    return next(filter(is_secret, names), names[-1] if names else "")


@functools.lru_cache(maxsize=1000)  # each setting of each config asks
def is_secret(name: str) -> bool:
    """Return whether a setting's name says that its value is secret: ``token``, ``camera_password``, ``api_key``."""
    return _SECRET_NAME.search(name) is not None
