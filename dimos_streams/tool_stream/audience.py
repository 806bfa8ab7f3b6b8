"""The audience of a skill: the one rule about it, which clients, hosts and the bridge share."""

from __future__ import annotations

from dimos_streams.skill import Audience

BRIDGE = "bridge"
"""The caller of the bridge's own calls; a bridge of another name has that behind it, ``bridge:NAME``."""


def bridge_caller(name: str) -> str:
    """The caller of the own calls of a bridge: several of one bus are told apart by it."""
    return BRIDGE if name == BRIDGE else f"{BRIDGE}:{name}"


def is_bridge(caller: str) -> bool:
    """Return whether a caller is a bridge; no module's name has a colon."""
    return caller.partition(":")[0] == BRIDGE


def refusal(skill: str, audience: Audience, *, caller: str, parent: str) -> str:
    """Return why the audience of its skill forbids a call; empty if it does not.

    ``parent`` is the call whose skill asks for it, empty if ``caller`` asks itself. All other rights of callers are
    the bridge's to decide (``bridge/calls/authority.py``).
    """
    if audience == "bridge" and (not is_bridge(caller) or parent):
        return f"skill {skill!r} is for the bridge alone, and nobody else may call it (here {caller!r})"
    if audience == "operator" and parent:
        return f"skill {skill!r} is for operators: no skill may begin it (here that of call {parent!r})"
    return ""
