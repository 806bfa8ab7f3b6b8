"""Addresses of web servers, as settings, callers and requests give them."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from dimos_streams.common.schemas.host_name import host_fault
from dimos_streams.common.secrets import unreadable_url
from dimos_streams.errors import UserError

_REQUESTED = re.compile(r"(?:\[(?P<address>[^][]*)\]|(?P<name>[^][:@/?#\\\s]*))(?::[0-9]{0,5})?")


def requested_host(header: str) -> str | None:
    """The host of a request's ``Host`` header, in lower case; None if that is anything but ``HOST[:PORT]``."""
    match = _REQUESTED.fullmatch(header)
    return (match["address"] or match["name"] or "").lower() if match else None


def http_host(url: str) -> str:
    """The host of a web server's address, to which paths can be added. Raises ``ValueError`` that says what would be
    one, and not what was given: it may have a password."""
    wanted = "it must be a server's address, 'http://HOST[:PORT][/PATH]' or 'https://…'"
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and parts.port != 0  # no number is a ValueError
        host = parts.hostname if is_valid else None
    except ValueError:
        host = None
    if not host:
        raise ValueError(wanted)
    if fault := host_fault(host):
        raise ValueError(f"{wanted}; {fault}")
    if "?" in url or "#" in url:
        raise ValueError(f"{wanted}, without anything behind '?' or '#'; a token has a place of its own")
    return host


def is_local(host: str) -> bool:
    """Return whether a host is this machine or one of its private network, which no proxy need lead to."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".localhost", ".internal", ".lan"))


def checked_http_url(url: str) -> str:
    """The address of a web server as it was given. Raises ``ValueError`` for any other text."""
    http_host(url)
    return url


def bridge_url(url: str) -> str:
    """The address of a bridge, without a slash at its end. Raises ``UserError`` for any other text."""
    try:
        http_host(url)
    except ValueError as error:
        raise UserError(f"bad bridge URL {unreadable_url(url)!r}: {error}") from error
    return url.rstrip("/")
