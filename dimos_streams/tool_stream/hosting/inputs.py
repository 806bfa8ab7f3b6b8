"""The part of a module's health that its inputs decide: what they lack."""

from __future__ import annotations

import typing

from dimos_streams.messages.codec import split_channel
from dimos_streams.module import Module

if typing.TYPE_CHECKING:
    from dimos_streams.streams import In

_SHORTEST_S = 2.0
"""The silence, in seconds, below which it is a hitch that only skills have to mind."""
_BEGINS_WITHIN_S = 5.0
"""The time, in seconds, that a sender may take until it begins."""


def what_inputs_lack(module: Module) -> str:
    """Return which inputs bring only what can't be used, or have been silent for longer than the module does without
    them, or nothing.

    Silence counts for inputs of ``longest_gaps`` which have been heard, or which the module can't do without.
    """
    gaps = module.longest_gaps(module.config)
    needed = frozenset(module.needed_inputs(module.config)) if gaps else ()
    lacking = (
        _lack(getattr(module, spec.name), gaps.get(spec.name), required=spec.required or spec.name in needed)
        for spec in module.streams().values()
        if spec.direction == "in" and not spec.on_demand
    )
    return "; ".join(filter(None, lacking))


def _lack(stream: In, longest_gap_s: float | None, *, required: bool) -> str:  # type: ignore[type-arg]
    heard = stream.latest is not None and longest_gap_s is not None
    bearable_s = max(longest_gap_s or 0.0, _SHORTEST_S if heard else _BEGINS_WITHIN_S)
    silent_s = stream.silent_s()
    if not stream.wired or silent_s <= bearable_s:
        return ""
    topic, _ = split_channel(stream.channel)
    if why := stream.skipped(bearable_s):
        return f"what comes on {topic} can't be used: {why}"
    if longest_gap_s is None:
        return ""
    if stream.latest is not None:
        return f"{topic} has been silent for {silent_s:.0f} s"
    return f"nothing has come on {topic} for {silent_s:.0f} s" if required else ""
