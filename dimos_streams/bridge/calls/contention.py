"""Calls that want the same: duplicates of a call that runs, and resources that another call holds."""

from __future__ import annotations

from dimos_streams import clock
from dimos_streams.bridge.calls.authority import Authority
from dimos_streams.bridge.calls.call_checker import CallChecker
from dimos_streams.bridge.calls.ledger import Ledger
from dimos_streams.bridge.calls.sending.call_sender import CallSender
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.state.remembered_calls import chain
from dimos_streams.bridge.calls.stops.stop_skills import overrule_what_waits
from dimos_streams.common.tasks import ends_within
from dimos_streams.errors import CallRejectedError
from dimos_streams.skill import OnDuplicate, SkillInfo
from dimos_streams.skill.tags import STOP
from dimos_streams.tool_stream.calling.withdrawal import named_reason
from dimos_streams.tool_stream.family import ancestors_of
from dimos_streams.tool_stream.gateway import ENDS_ITS_OWN

_REPLACE_S = 10.0
"""Time, in seconds, for a call that is replaced to end."""


class Contention:
    """Has calls wait for each other, replace each other, or be refused. Use from the bus's loop only."""

    def __init__(
        self,
        ledger: Ledger,
        sender: CallSender,
        authority: Authority,
        checker: CallChecker,
    ) -> None:
        self._ledger = ledger
        self._sender = sender
        self._authority = authority
        self._checker = checker

    async def make_way(self, call: CallState) -> SkillInfo:
        """Wait until no duplicate and no lease is in the way, and return the call's skill. Nothing else runs between
        that and the return."""
        await self._ledger.until_all_are_known()
        deadline = clock.monotonic() + call.lease_wait_s
        while True:
            info = self._checker.check(call)
            duplicates = [other for other in self._ledger.calls.open if _are_duplicates(info, other, call)]
            policy = call.on_duplicate or info.on_duplicate
            if duplicates and policy != "allow":
                self._check_replaceable(duplicates, call, policy, protected=info.protected)
                await self._replace(duplicates, call)
                continue
            conflicts = self._ledger.leases.conflicts(call.call_id, call.resources)
            if not conflicts:
                return info
            resource, holder = next(iter(conflicts.items()))
            if not await self._wait_for_end(holder, deadline - clock.monotonic()):
                raise CallRejectedError(self._busy(call, resource, holder), holder=holder, resource=resource)

    def begin(self, call: CallState, info: SkillInfo) -> None:
        """Begin a call that nothing is in the way of. If its skill stops others, what waits for them does not begin.
        Raises ``CallRejectedError`` if it is too late to begin it."""
        self._sender.begin(call)
        if STOP in info.tags:
            overrule_what_waits(self._ledger, call)

    def _check_replaceable(
        self, duplicates: list[CallState], call: CallState, policy: OnDuplicate, *, protected: bool
    ) -> None:
        """Raise ``CallRejectedError`` unless a call is to take the place of its duplicates, and may."""
        irreplaceable = next((other for other in duplicates if not self._authority.may_replace(call, other)), None)
        duplicate = irreplaceable or duplicates[0]
        running = f"{call.skill!r} runs already as call {duplicate.call_id!r} of {duplicate.caller!r}"
        if policy == "replace" and not protected:
            self._check_family(duplicates, call)
        if policy == "reject":
            raise CallRejectedError(running, holder=duplicate.call_id)
        if policy == "confirm":
            said = duplicate.text or "not begun yet"
            text = f"{running} ({said}). Repeat the call with on_duplicate='allow' to run both"
            instead = "" if protected or irreplaceable else ", or 'replace' to end the running one first"
            raise CallRejectedError(f"{text}{instead}", holder=duplicate.call_id)
        if protected:
            text = f"{running}, and no other call takes the place of one of {call.skill!r}: wait for it, or cancel it"
            raise CallRejectedError(text, holder=duplicate.call_id)
        if irreplaceable:
            raise CallRejectedError(f"{running}{ENDS_ITS_OWN}", holder=duplicate.call_id)

    async def _replace(self, duplicates: list[CallState], call: CallState) -> None:
        """End the duplicates of a call. Raises ``CallRejectedError`` if one goes on."""
        deadline = clock.monotonic() + _REPLACE_S
        for old in duplicates:
            self._sender.order_end(old, named_reason(f"replaced by another call of {call.skill!r}", call.caller))
        for old in duplicates:
            if not await self._wait_for_end(old.call_id, deadline - clock.monotonic()):
                text = f"call {old.call_id!r} was to be replaced but did not end within {_REPLACE_S:g} s"
                raise CallRejectedError(text, holder=old.call_id)

    def _check_family(self, duplicates: list[CallState], call: CallState) -> None:
        """Refuse a call that would end one to which it belongs, and wait for its own end. Raises
        ``CallRejectedError``."""
        ancestors = ancestors_of(call.call_id)
        for duplicate in duplicates:
            if duplicate.call_id in ancestors:
                text = (
                    f"{call.skill!r} takes the place of a call of it that runs, and that is call"
                    f" {duplicate.call_id!r}, to which this one would belong: {chain(self._ledger.calls, call)}"
                )
                raise CallRejectedError(text, holder=duplicate.call_id)

    async def _wait_for_end(self, call_id: str, within_s: float) -> bool:
        call = self._ledger.calls.get(call_id)
        return call is None or (within_s > 0 and await ends_within(within_s, call.closed.wait()))

    def _busy(self, call: CallState, resource: str, holder: str) -> str:
        held_by = self._ledger.calls.get(holder)
        if held_by is None:
            return f"{call.skill!r} needs {resource!r}, which call {holder!r} holds"
        what = f"{held_by.skill!r} holds for {held_by.caller!r} ({held_by.text or 'not begun yet'})"
        return f"{call.skill!r} needs {resource!r}, which {what}: call {holder!r}"


def _are_duplicates(info: SkillInfo, one: CallState, other: CallState) -> bool:
    """Return whether two calls count as duplicates of each other."""
    return one.skill == other.skill and info.are_duplicates(one.arguments, other.arguments)
