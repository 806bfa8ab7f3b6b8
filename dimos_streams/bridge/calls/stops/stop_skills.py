"""Calls of skills with the tag ``stop``, which keep motions from beginning that wait for the calls that they end.

Whoever calls such a skill wants the robot to stand still. If it ends a call for whose lease another motion waits,
that motion would begin at once.
"""

from __future__ import annotations

from dimos_streams.bridge.calls.ledger import Ledger
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.stops.overruling import overrule
from dimos_streams.tool_stream.family import ancestors_of


def overrule_what_waits(ledger: Ledger, stop: CallState) -> None:
    """Keep all waiting motions from beginning that are of the stop's module, or wait for calls of it."""
    for call in ledger.waiting.values():
        if call is not stop and (call.module == stop.module or stop.module in _waited_for(ledger, call)):
            overrule(call, "motion", "")


def _waited_for(ledger: Ledger, call: CallState) -> set[str]:
    """The modules whose calls hold what a call needs, or have passed it on."""
    holders = ledger.leases.conflicts(call.call_id, call.resources).values()
    family = [call_id for holder in holders for call_id in (holder, *ancestors_of(holder))]
    return {held.module for call_id in family if (held := ledger.calls.get(call_id)) is not None}
