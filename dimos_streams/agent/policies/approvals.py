"""Approvals: calls that wait for an operator's decision."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, cast

from dimos_streams import clock
from dimos_streams.agent.policies.approval import Approval, Check, Decision
from dimos_streams.agent.policies.approval_texts import request_text, unknown_approval
from dimos_streams.agent.policies.canonical import canonical, exactly
from dimos_streams.agent.policies.decided_approvals import DecidedApprovals
from dimos_streams.agent.policies.decision_time import DecisionTime
from dimos_streams.agent.policies.gates.settings import ApprovalSettings
from dimos_streams.agent.record.agent_events import Emit, EventKind
from dimos_streams.agent.record.event_data.operators import ApprovalData
from dimos_streams.errors import ConflictError
from dimos_streams.operator.messages.agent import DECIDED, ApprovalState, ApprovalView, OnConsoleLoss
from dimos_streams.operator.reporting import approvals_within

_TOO_LATE = "nobody decided in time"


class ApprovalRegistry:
    """Asks operators, and wakes whoever waits for the answer, exactly once, whatever the answer is.

    A call is known by module, skill and arguments. Within a mission the same call asks once: while the first is
    pending it waits with it, and what was decided on that (approved as it was, or rejected) holds for it again. Calls
    with other arguments ask again; so does a call whose approval was deleted, timed out, or approved with changed
    arguments, and one that somebody else than the agent has ended.

    Whatever happens is an event (``approval_created``, ``approval_changed``, ``approval_decided``) that carries the
    approval's view. A decision counts from the moment of the creating event on, also if it comes while that is still
    being announced.
    """

    def __init__(
        self,
        settings: ApprovalSettings,
        emit: Emit,
        *,
        agent: str = "agent",
        input: Callable[[tuple[str, ...]], str] = lambda missions: "",
        why_ended: Callable[[tuple[str, ...]], str] = lambda missions: "",
    ) -> None:
        """``input`` returns the operator's input that led to a call of these missions, ``why_ended`` why they have
        ended early, an empty text if none has."""
        self._settings = settings
        self._input = input
        self._why_ended = why_ended
        self._emit = emit
        self._agent = agent
        # The moment is in the ids so that those of a restarted agent are new.
        self._prefix = f"{agent}-{clock.utime():x}"
        self._numbers = itertools.count(1)
        self._pending: dict[str, Approval] = {}
        self.decided = DecidedApprovals()
        self._watched = True

    @property
    def on_console_loss(self) -> OnConsoleLoss:
        """The setting for the loss of the last console."""
        return self._settings.on_console_loss

    async def ask(
        self,
        skill: str,
        arguments: Mapping[str, Any],
        *,
        module: str = "",
        reason: str = "",
        missions: tuple[str, ...] = (),
        check: Check = lambda arguments: arguments,
        anew: bool = False,
    ) -> Decision:
        """Return the decision on a call, waiting for it. ``check`` judges arguments that an operator puts in their
        place; ``anew`` is True if what was decided on the same call before does not hold for this one."""
        known = None if anew else self._known((module, skill, canonical(arguments)), missions)
        if known is not None and known.state != "pending":
            return known.decision()
        if known is None:
            refusal = self._refusal()
            if refusal:
                return Decision(approved=False, arguments=arguments, reason=refusal)
        approval = known or self._create(skill, module, arguments, reason, missions, check)
        approval.waiters += 1
        try:
            await asyncio.shield(approval.decided)
        finally:
            approval.waiters -= 1
            if not approval.waiters:
                why = self._why_ended(missions)
                self._conclude(approval, "deleted", f"nobody waits for it any more{why and f': {why}'}")
        return approval.decision()

    def pending(self) -> list[ApprovalView]:
        """The approvals that are pending, oldest first."""
        return [approval.view(self._agent) for approval in self._pending.values()]

    @property
    def waiting(self) -> int:
        """The number of those that are pending."""
        return len(self._pending)

    def find(self, id: str) -> list[ApprovalView]:
        """The one with that id, whether it waits or was decided; none if it is not remembered."""
        found = self._pending.get(id) or self.decided.get(id)
        return [] if found is None else [found.view(self._agent)]

    def decide(
        self,
        id: str,
        decision: Literal["approve", "reject", "delete"],
        arguments: Mapping[str, Any] | None = None,
        reason: str = "",
        *,
        revision: int | None = None,
        by: str = "",
    ) -> ApprovalView:
        """Decide on an approval in the name of ``by``; deciding the same again does nothing. Return what then holds.

        ``arguments`` replace those that were asked for; ``revision`` is the one that was seen, or None for whatever
        holds. Raises ``SkillError`` for an unknown id, for arguments that do not fit (then it stays pending), and for
        another decision than the one that holds, and ``ConflictError`` for another revision than the present one.
        """
        approval = self._get(id)
        state = DECIDED[decision]
        if decision != "approve":
            arguments = None
        with self._with_view_on_conflict(approval):
            if approval.state != "pending":
                approval.check_same(state, arguments)
            approval.check_seen(revision, arguments)
        if approval.state != "pending":
            return approval.view(self._agent)
        if arguments is not None:
            self._change(approval, arguments)
        why = reason or ("the operator has dropped it" if state == "deleted" else "")
        self._conclude(approval, state, why, by)
        return approval.view(self._agent)

    def amend(self, id: str, arguments: Mapping[str, Any], *, revision: int | None = None) -> ApprovalView:
        """Change the arguments of an approval that is pending; see ``decide``."""
        approval = self._get(id)
        with self._with_view_on_conflict(approval):
            if approval.state != "pending":
                approval.check_same(approval.state, arguments)
            approval.check_seen(revision, arguments)
        if approval.state == "pending":
            self._change(approval, arguments)
        return approval.view(self._agent)

    def console(self, *, present: bool) -> None:
        """Note whether an operator's console is connected; the settings say what follows from its loss."""
        if present == self._watched:
            return
        self._watched = present
        policy = self._settings.on_console_loss
        for approval in list(self._pending.values()):
            if policy == "abort" and not present:
                self._conclude(approval, "deleted", "no operator's console is connected any more")
            elif policy == "hold":
                self._run_time(approval) if present else approval.time.stand_still()

    def close(self) -> None:
        """Deny all that is pending. Twice is fine."""
        for approval in list(self._pending.values()):
            self._conclude(approval, "deleted", "the agent stops")

    def _refusal(self) -> str:
        """The reason nobody is asked at the moment; empty if there is none."""
        if not self._watched and self._settings.on_console_loss == "abort":
            return "no operator's console is connected"
        if len(self._pending) >= self._settings.max_pending:
            return f"{self._settings.max_pending} approvals are pending already"
        return ""

    def _known(self, key: tuple[str, str, str], missions: tuple[str, ...]) -> Approval | None:
        """The newest approval of the same call of the same missions, pending or with a decision that still holds, or
        None."""
        for approval in self._pending.values():
            if approval.key == key and approval.missions == missions:
                return approval
        return self.decided.holding_for(key, missions)

    def _create(
        self,
        skill: str,
        module: str,
        arguments: Mapping[str, Any],
        reason: str,
        missions: tuple[str, ...],
        check: Check,
    ) -> Approval:
        approval = Approval(
            id=f"{self._prefix}-{next(self._numbers)}",
            skill=skill,
            module=module,
            asked=dict(arguments),
            arguments=dict(arguments),
            reason=self._why(reason, missions),
            missions=missions,
            check=check,
            decided=asyncio.get_running_loop().create_future(),
            created_utime=clock.utime(),
            time=DecisionTime(self._settings.timeout_s),
        )
        self._pending[approval.id] = approval
        if self._watched or self._settings.on_console_loss != "hold":
            self._run_time(approval)
        # Everything is in place: an operator who hears of it may decide at once.
        text = request_text(approval)
        self._emit(EventKind.APPROVAL_CREATED, missions, approval=self._data(approval), text=text)
        return approval

    def _why(self, reason: str, missions: tuple[str, ...]) -> str:
        input = self._input(missions)
        return "; ".join(filter(None, [reason, f"for {input!r}" if input else ""]))

    def _change(self, approval: Approval, arguments: Mapping[str, Any]) -> None:
        arguments = approval.check(arguments)
        if exactly(arguments) == exactly(approval.arguments):
            return
        approval.arguments = dict(arguments)
        approval.revision += 1
        self._emit(EventKind.APPROVAL_CHANGED, approval.missions, approval=self._data(approval))

    @contextlib.contextmanager
    def _with_view_on_conflict(self, approval: Approval) -> Iterator[None]:
        """Give a ``ConflictError`` that is raised in the block what holds as its result."""
        try:
            yield
        except ConflictError as error:
            (error.result,) = approvals_within([approval.view(self._agent)])
            raise

    def _conclude(self, approval: Approval, state: ApprovalState, why: str, by: str = "") -> None:
        if approval.state != "pending":
            return
        approval.state, approval.why, approval.decided_by = state, why, by
        approval.time.end()
        self._pending.pop(approval.id)
        self.decided.add(approval)
        approval.decided.set_result(None)
        self._emit(EventKind.APPROVAL_DECIDED, approval.missions, approval=self._data(approval), why=why)

    def _data(self, approval: Approval) -> ApprovalData:
        return cast("ApprovalData", approval.view(self._agent).model_dump(mode="json"))

    def _run_time(self, approval: Approval) -> None:
        approval.time.run(lambda: self._conclude(approval, "timed_out", _TOO_LATE))

    def _get(self, id: str) -> Approval:
        found = self._pending.get(id) or self.decided.get(id)
        if found is None:
            raise unknown_approval(id, self._agent, self._prefix, list(self._pending))
        if found.time.is_over:
            self._conclude(found, "timed_out", _TOO_LATE)
        return found
