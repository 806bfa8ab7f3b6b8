"""Names of hosts, as settings and addresses have them."""

from __future__ import annotations


def host_fault(host: str) -> str:
    """Return why no host can have a name or an address; empty for one that can be looked up. A look-up itself would
    raise ``UnicodeError`` for it, which nobody expects of a network."""
    try:
        host.encode("idna")
    except UnicodeError as error:
        why = error.reason if isinstance(error, UnicodeEncodeError) else error.__cause__ or error
        return f"no host has such a name: {why}"
    return ""
