"""The rules of who may connect to the viewers' server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dimos_streams.common.http.bearer import has_token
from dimos_streams.common.http.own_origin import is_own_origin
from dimos_streams.common.process.loopback import is_loopback
from dimos_streams.common.schemas.http_url import requested_host

FOXGLOVE_APP = "https://app.foxglove.dev"
"""The origin of Foxglove's own pages."""
_APPLICATIONS = ("foxglove", "lichtblick")
"""The applications that may connect, as they are called in their ``User-Agent``, in lower case."""


@dataclass(frozen=True)
class AdmissionRules:
    """The rules of who may connect: with a token whoever has it, else all on this machine but other pages."""

    token: str | None = None
    origins: frozenset[str] = frozenset()
    """Origins of pages besides Foxglove's own."""

    def refusal(self, target: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """The status and the text for a request that may not pass, or None for one that may."""
        if self.token is not None:
            if has_token(self.token, headers.get("authorization", ""), target.partition("?")[2]):
                return None
            return 401, "the run's token is needed: ws://…/?token=TOKEN"
        if not target.startswith("/"):
            return 400, f"a viewer asks for a path, not for {target!r}"
        host, origin = headers.get("host", ""), headers.get("origin")
        if not is_loopback(requested_host(host) or ""):  # a name of somebody's that leads here
            return 403, f"this server is not {host!r}; valid: localhost and addresses of this machine"
        is_own = origin is None or is_own_origin(origin, host) or origin in (FOXGLOVE_APP, *self.origins)
        if not is_own and not _is_application(origin or "", headers.get("user-agent", "")):
            return 403, f"pages of {origin!r} may not use this server; its setting `origins` lists those that may"
        return None


def _is_application(origin: str, user_agent: str) -> bool:
    """Return whether Foxglove's or Lichtblick's application on this machine asks, and no browser: its pages come from
    its own files (``file://``), and no page can change the name of its program. Other programs that are built on
    Electron, as editors, show pages of strangers."""
    scheme = origin.partition(":")[0].lower()
    is_of_web = scheme in ("http", "https", "null") or scheme.endswith("-extension")
    program = user_agent.lower()
    return "electron/" in program and any(name in program for name in _APPLICATIONS) and not is_of_web
