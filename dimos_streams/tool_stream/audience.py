"""Whom a skill is for: the one rule about that, which clients, hosts and the bridge share."""

from __future__ import annotations

from dimos_streams.skill import Audience

BRIDGE = "bridge"
"""The caller of the bridge's own calls."""


def refusal(skill: str, audience: Audience, *, caller: str, parent: str) -> str:
    """Why a call can't be, for whom its skill is for; empty if it can.

    ``parent`` is the call whose skill asks for it, empty if ``caller`` asks itself. Who calls with which rights
    besides is the bridge's to say (``bridge/calls/authority.py``).
    """
    if audience == "bridge" and (caller != BRIDGE or parent):
        return f"skill {skill!r} is for the bridge alone, and nobody else may call it (here {caller!r})"
    if audience == "operator" and parent:
        return f"skill {skill!r} is for operators: no skill may begin it (here that of call {parent!r})"
    return ""
