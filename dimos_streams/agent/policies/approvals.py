"""Approvals: calls that wait for an operator's decision."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dimos_streams import clock
from dimos_streams.agent.calls.canonical import canonical, shown
from dimos_streams.agent.policies.gates.base import Emit
from dimos_streams.agent.policies.gates.settings import ApprovalSettings
from dimos_streams.errors import SkillError, suggest
from dimos_streams.operator.messages.agent import ApprovalView, OnConsoleLoss

State = Literal["pending", "approved", "rejected", "deleted", "timed_out"]
Check = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""The arguments with what they leave out. Raises ``SkillError`` for arguments that can't be."""

_DECIDED = 1000
_SHOWN = 20_000
"""Characters of a call in the note that says that it waits: all of each plan, and of each usual call."""
_DECISIONS: dict[str, State] = {"approve": "approved", "reject": "rejected", "delete": "deleted"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision on an approval."""

    approved: bool
    arguments: Mapping[str, Any]
    """Those to use; an operator may have changed them."""
    changed: bool = False
    reason: str = ""


@dataclass(slots=True, kw_only=True)
class _Approval:
    id: str
    skill: str
    module: str
    asked: Mapping[str, Any]
    arguments: Mapping[str, Any]
    reason: str
    missions: tuple[str, ...]
    check: Check
    decided: asyncio.Future[None]
    created_utime: int
    expires_utime: int | None
    state: State = "pending"
    why: str = ""
    """The operator's reason for the decision."""
    waiters: int = 0
    timer: asyncio.TimerHandle | None = None
    remaining_s: float | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.skill, canonical(self.asked)

    def decision(self) -> Decision:
        changed = canonical(self.arguments) != canonical(self.asked)
        return Decision(approved=self.state == "approved", arguments=self.arguments, changed=changed, reason=self.why)


class ApprovalBook:
    """Asks operators, and wakes who waits for the answer, exactly once, whatever the answer is.

    A call is known by skill and arguments. Within a mission the same call asks once: while it is pending it waits
    with the first, and what was decided on it (approved as it was, or rejected) holds for it again. Other arguments
    ask again; so does a call whose approval was deleted, timed out, or approved with changed arguments.

    Whatever happens is an event (``approval_created``, ``approval_changed``, ``approval_decided``) that carries the
    approval's view. A decision counts from the moment of the creating event on, also if it comes while that is
    still being announced.
    """

    def __init__(
        self,
        settings: ApprovalSettings,
        emit: Emit,
        *,
        agent: str = "agent",
        input: Callable[[tuple[str, ...]], str] = lambda missions: "",
    ) -> None:
        """``input`` gives the operator's input that led to a call of these missions."""
        self._settings = settings
        self._input = input
        self._emit = emit
        self._agent = agent
        # The moment is in the ids so that those of a restarted agent are new.
        self._prefix = f"{agent}-{clock.utime():x}"
        self._numbers = itertools.count(1)
        self._pending: dict[str, _Approval] = {}
        self._decided: OrderedDict[str, _Approval] = OrderedDict()
        self._watched = True

    @property
    def on_console_loss(self) -> OnConsoleLoss:
        """The setting."""
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
    ) -> Decision:
        """Wait for the decision on a call. ``check`` judges arguments that an operator puts in their place."""
        known = self._known((skill, canonical(arguments)), missions)
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
                self._settle(approval, "deleted", "nobody waits for it any more")
        return approval.decision()

    def pending(self) -> list[ApprovalView]:
        """Those that wait, oldest first."""
        return [self._view(approval) for approval in self._pending.values()]

    def decide(
        self,
        id: str,
        decision: Literal["approve", "reject", "delete"],
        arguments: Mapping[str, Any] | None = None,
        reason: str = "",
    ) -> ApprovalView:
        """Decide; on one that is decided already this does nothing. What then holds of it.

        ``arguments`` replace those that were asked for. Raises ``SkillError`` for an unknown id, or for arguments
        that do not fit; then it stays pending.
        """
        approval = self._get(id)
        if approval.state == "pending":
            if decision == "approve" and arguments is not None:
                self._change(approval, arguments)
            state = _DECISIONS[decision]
            self._settle(approval, state, reason or ("the operator has dropped it" if state == "deleted" else ""))
        return self._view(approval)

    def amend(self, id: str, arguments: Mapping[str, Any]) -> ApprovalView:
        """Change the arguments of one that is pending; see ``decide``."""
        approval = self._get(id)
        if approval.state == "pending":
            self._change(approval, arguments)
        return self._view(approval)

    def console(self, *, present: bool) -> None:
        """Whether an operator's console is connected; the settings say what follows from its loss."""
        if present == self._watched:
            return
        self._watched = present
        policy = self._settings.on_console_loss
        for approval in list(self._pending.values()):
            if policy == "abort" and not present:
                self._settle(approval, "rejected", "no operator's console is connected any more")
            elif policy == "hold":
                self._hold(approval) if not present else self._start_timer(approval, approval.remaining_s)

    def close(self) -> None:
        """Deny all that is pending. Twice is fine."""
        for approval in list(self._pending.values()):
            self._settle(approval, "deleted", "the agent stops")

    def _refusal(self) -> str:
        """Why nobody is asked at the moment."""
        if not self._watched and self._settings.on_console_loss == "abort":
            return "no operator's console is connected"
        if len(self._pending) >= self._settings.max_pending:
            return f"{self._settings.max_pending} approvals are pending already"
        return ""

    def _known(self, key: tuple[str, str], missions: tuple[str, ...]) -> _Approval | None:
        """The same call of the same missions, pending or with a decision that still holds; the newest first."""
        for approval in self._pending.values():
            if approval.key == key and approval.missions == missions:
                return approval
        for approval in reversed(self._decided.values()):
            if approval.key == key and approval.missions == missions:
                final = approval.state == "rejected" or (
                    approval.state == "approved" and not approval.decision().changed
                )
                return approval if final and missions else None
        return None

    def _create(
        self,
        skill: str,
        module: str,
        arguments: Mapping[str, Any],
        reason: str,
        missions: tuple[str, ...],
        check: Check,
    ) -> _Approval:
        now, timeout_s = clock.utime(), self._settings.timeout_s
        input = self._input(missions)
        reason = "; ".join(filter(None, [reason, f"for {input!r}" if input else ""]))
        approval = _Approval(
            id=f"{self._prefix}-{next(self._numbers)}",
            skill=skill,
            module=module,
            asked=dict(arguments),
            arguments=dict(arguments),
            reason=reason,
            missions=missions,
            check=check,
            decided=asyncio.get_running_loop().create_future(),
            created_utime=now,
            expires_utime=None,
        )
        self._pending[approval.id] = approval
        if self._watched or self._settings.on_console_loss != "hold":
            self._start_timer(approval, timeout_s)
        else:
            approval.remaining_s = timeout_s
        # All is in place: whoever hears of it may decide at once.
        view = self._view(approval).model_dump(mode="json")
        self._emit("approval_created", missions, approval=view, text=_request_text(approval))
        return approval

    def _change(self, approval: _Approval, arguments: Mapping[str, Any]) -> None:
        arguments = approval.check(arguments)
        if canonical(arguments) == canonical(approval.arguments):
            return
        approval.arguments = dict(arguments)
        self._emit("approval_changed", approval.missions, approval=self._view(approval).model_dump(mode="json"))

    def _settle(self, approval: _Approval, state: State, why: str) -> None:
        if approval.state != "pending":
            return
        approval.state, approval.why = state, why
        if approval.timer is not None:
            approval.timer.cancel()
        self._pending.pop(approval.id)
        self._decided[approval.id] = approval
        while len(self._decided) > _DECIDED:
            self._decided.popitem(last=False)
        approval.decided.set_result(None)
        view = self._view(approval).model_dump(mode="json")
        self._emit("approval_decided", approval.missions, approval=view, why=why)

    def _start_timer(self, approval: _Approval, after_s: float | None) -> None:
        if after_s is None:
            return
        approval.expires_utime = clock.utime() + round(after_s * 1e6)
        why = "nobody decided in time"
        loop = asyncio.get_running_loop()
        approval.timer = loop.call_later(after_s, self._settle, approval, "timed_out", why)

    def _hold(self, approval: _Approval) -> None:
        """Let time stand still for one that is pending."""
        if approval.timer is not None:
            approval.remaining_s = max(0.0, approval.timer.when() - clock.monotonic())
            approval.timer.cancel()
            approval.timer, approval.expires_utime = None, None

    def _get(self, id: str) -> _Approval:
        found = self._pending.get(id) or self._decided.get(id)
        if found is None:
            pending = list(self._pending)
            listed = ", ".join(pending[:10]) or "none"
            raise SkillError(f"no approval has the id {id!r}{suggest(id, pending)} (pending: {listed})")
        return found

    def _view(self, approval: _Approval) -> ApprovalView:
        return ApprovalView(
            id=approval.id,
            agent=self._agent,
            skill=approval.skill,
            module=approval.module,
            arguments=dict(approval.arguments),
            reason=approval.reason,
            missions=approval.missions,
            state=approval.state,
            created_utime=approval.created_utime,
            expires_utime=approval.expires_utime,
        )


def denial(skill: str, arguments: Mapping[str, Any], decision: Decision) -> str:
    """The result that a model is shown of a call that an operator did not approve."""
    why = f": {decision.reason}" if decision.reason else ""
    return f"Not run: {shown(skill, arguments)} was not approved{why}. Do not repeat it as it is."


def _request_text(approval: _Approval) -> str:
    """For whoever follows the conversation and has no console."""
    why = f" ({approval.reason})" if approval.reason else ""
    commands = f"`dimos-streams approve {approval.id}`, or `reject`"
    text = _whole(approval.skill, approval.arguments)
    if len(text) > _SHOWN:
        hidden = len(text) - _SHOWN
        text = f"{text[:_SHOWN]}…\n{hidden} characters are not shown here: `dimos-streams approvals {approval.id}`"
    return f"Waits for an operator's decision{why}: {text}\n{commands}"


def _whole(skill: str, arguments: Mapping[str, Any]) -> str:
    """A call with all its arguments; the steps of a plan first, one a line."""
    steps = arguments.get("steps")
    if (
        not isinstance(steps, list)
        or not steps
        or not all(isinstance(step, Mapping) and "skill" in step for step in steps)
    ):
        return shown(skill, arguments, sys.maxsize)
    calls = [shown(str(step["skill"]), step.get("arguments") or {}, sys.maxsize) for step in steps]
    others = {name: value for name, value in arguments.items() if name != "steps"}
    listed = "".join(f"\n{number}. {call}" for number, call in enumerate(calls, 1))
    return f"{skill} with these steps:{listed}\n{shown('', others, sys.maxsize)}"
