"""Has agents look at calls that skills ask for on their behalf, before they begin."""

from __future__ import annotations

from collections.abc import Callable

from dimos_streams.bridge.calls.authority import Authority
from dimos_streams.bridge.calls.contention import Contention
from dimos_streams.bridge.calls.ledger import Ledger
from dimos_streams.bridge.calls.sending.call_sender import CallSender
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.state.journalled_call import CLOSED
from dimos_streams.common.tasks import ends_within
from dimos_streams.errors import CallRejectedError
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.tool_stream.arguments.schemas import arguments_size, check_depth, check_size
from dimos_streams.tool_stream.audience import bridge_caller
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.review import BEGUN, Permission, permission_in

_LOOK_S = 0.05
"""Pause, in seconds, between two looks at a review and at all calls that lead to it. Events cause no look:
reviews may wait long for an operator, while the events of other calls come in a flood."""


class CallReviews:
    """Holds a review open until its call has begun, so that the agent may take a permission back, as for a pause."""

    def __init__(
        self,
        name: str,
        ledger: Ledger,
        sender: CallSender,
        authority: Authority,
        contention: Contention,
        new_id: Callable[[], str],
    ) -> None:
        """``name`` is the bridge's: others of its bus look after reviews of their own."""
        self._caller = bridge_caller(name)
        self._ledger = ledger
        self._sender = sender
        self._authority = authority
        self._contention = contention
        self._new_id = new_id
        self._open: set[str] = set()

    async def begin(self, call: CallState) -> None:
        """Begin a call when its agent permits it and nothing else is in the way.

        Raises ``SkillError``, also for more than a review can carry.
        """
        review = self._ask(call)
        why = "it did not begin"
        try:
            while True:
                permission = await self._wait_for_permission(review, call)
                call.arguments, call.on_duplicate = permission.arguments, permission.on_duplicate
                info = await self._contention.make_way(call)
                if self._permission(review, call) == permission:
                    break
            self._contention.begin(call, info)
            why = BEGUN
        except CallRejectedError as error:
            why = str(error)
            raise
        finally:
            self._open.discard(review.call_id)
            self._sender.cancel(review, why)

    def on_status(self, status: ModuleStatus) -> None:
        """End reviews that an earlier process of this bridge has begun: nobody waits for them."""
        for call_id in status.call_ids:
            review = self._ledger.calls.get(call_id)
            if review is not None and review.caller == self._caller and call_id not in self._open:
                self._sender.cancel(review, "the bridge was started again")

    def _ask(self, call: CallState) -> CallState:
        found = self._authority.reviewer(call)
        assert found is not None, "only calls that have a reviewer come here"
        agent, skill = found
        review = CallState(
            call_id=self._new_id(),
            skill=skill.name,
            module=agent.name,
            caller=self._caller,
            arguments={
                "call_id": call.call_id,
                "parent": call.parent,
                "skill": call.skill,
                "arguments": dict(call.arguments),
            },
        )
        check_size(call.skill, arguments_size(review.arguments))
        check_depth(call.skill, review.arguments)
        self._open.add(review.call_id)
        self._sender.begin(review)
        return review

    async def _wait_for_permission(self, review: CallState, call: CallState) -> Permission:
        """Wait for the permission, for as long as that takes."""
        while (permission := self._permission(review, call)) is None:
            # The first event of a review wakes at once; what follows, and what becomes of who asked, is looked at.
            update = review.closed if review.answered.is_set() else review.answered
            await ends_within(_LOOK_S, update.wait())
        return permission

    def _permission(self, review: CallState, call: CallState) -> Permission | None:
        """The agent's present verdict. Raises ``CallRejectedError`` if it refuses, if the verdict is lost, or if
        nobody asks any more."""
        self._authority.trace(call)
        if review.last is not None and review.last.type == "gap":  # an agent that waits does not say it again
            text = f"what agent {call.caller!r} has said of {call.skill!r} is lost: ask for it again"
            raise CallRejectedError(text)
        if review.state != CLOSED:
            return permission_in(review.last)
        if review.outcome is Outcome.FAILED:
            raise CallRejectedError(review.text)
        why = "is gone" if review.outcome is Outcome.LOST else "does not look at it any more"
        raise CallRejectedError(f"agent {call.caller!r}, for whom {call.skill!r} was to begin, {why}: {review.text}")
