"""The signs that a request is meant for this server and comes from no other page: its host, and the origin of the
page that asks."""

from __future__ import annotations

_ABSOLUTE = (b"http://", b"https://")


def absolute_form(target: bytes) -> tuple[bytes, bytes] | None:
    """The host and the path of a request's target that is a whole address, as clients of proxies send it; the host
    counts instead of ``Host`` (RFC 9112, 3.2.2). None for a target that is a path."""
    if not target.lower().startswith(_ABSOLUTE):
        return None
    _, _, rest = target.partition(b"//")
    host, slash, path = rest.partition(b"/")
    return host, slash + path or b"/"


def is_own_origin(origin: str, host: str) -> bool:
    """Return whether the pages of an origin are those of the server that was asked as ``host``, with its port."""
    return origin in (f"http://{host}", f"https://{host}")
