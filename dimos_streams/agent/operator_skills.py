"""The operators' skills of an agent's module, for the command line, consoles and scripts."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections import deque
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from dimos_streams import clock
from dimos_streams.agent.control.control import Mode
from dimos_streams.agent.control.reports import AbortReport, UndoReport
from dimos_streams.agent.models import late_imports
from dimos_streams.agent.policies.canonical import shown
from dimos_streams.agent.record.agent_events import EventKind, reported
from dimos_streams.agent.standing_events import MODE, Setting
from dimos_streams.common.tasks import ends_within
from dimos_streams.documents.problem import BlueprintError
from dimos_streams.errors import SkillError, UserError, suggest
from dimos_streams.module import Module
from dimos_streams.operator.messages.agent import AgentEvent, ApprovalView
from dimos_streams.operator.messages.hold import PauseReport
from dimos_streams.operator.messages.kept_report import UnkeptOrder
from dimos_streams.operator.reporting import MAX_REPORT, approvals_within, event_data, snapshot_data, within
from dimos_streams.skill import Call, skill
from dimos_streams.tool_stream.calling.withdrawal import named_reason

if TYPE_CHECKING:
    from dimos_streams.agent.core import AgentCore

SNAPSHOT_PERIOD_S = 0.2
Revision = Annotated[int, Field(ge=1)]
_BACKLOG = 10_000
"""Maximum number of events that wait for a reader of the report; the oldest go, and the numbers show it."""


class OperatorSkills(Module):
    """Base of the agent: all that is done to ``core`` from outside, except ``say``."""

    if TYPE_CHECKING:
        core: AgentCore

    @skill(audience="operator")
    async def report(self, call: Call) -> None:
        """Report all that happens in the agent, and what it looks like now; open until it is cancelled."""
        core = self._core()
        backlog: deque[AgentEvent] = deque(maxlen=_BACKLOG)
        changed = asyncio.Event()

        def hear(event: AgentEvent) -> None:
            backlog.append(event)
            changed.set()

        with core.operators.console.watching(), contextlib.ExitStack() as stack:
            stack.callback(core.events.listen(hear))
            stack.callback(core.changed.add(changed.set))
            await call.update("reporting")
            call.progress("", **snapshot_data(core.operators.snapshots.take(watched=True)))
            due = clock.monotonic() + SNAPSHOT_PERIOD_S
            while True:
                await changed.wait()
                changed.clear()
                while backlog:
                    event = backlog.popleft()
                    await call.update(event.kind, **event_data(reported(event)))
                if (left_s := due - clock.monotonic()) > 0:
                    await ends_within(left_s, changed.wait())
                if backlog:
                    continue
                due = clock.monotonic() + SNAPSHOT_PERIOD_S
                call.progress("", **snapshot_data(core.operators.snapshots.take(watched=True)))

    @skill(audience="operator")
    async def pause(self, call: Call, reason: str = "") -> PauseReport:
        """Begin nothing new and hold the robot still; what runs goes on waiting.

        Reports which velocity gates hold the robot still. Where one has not said so, the robot may go on moving.

        Args:
            reason: Shown to other operators.
        """
        core = self._core()
        changed = core.control.pause(_attributed(reason, call))
        hold = await core.oversight.robot_hold.confirmed()
        if not core.control.paused:
            mode = core.control.mode
            raise SkillError(f"another command has ended the pause meanwhile: the agent's mode is {mode}")
        unkept = core.memory.unkept(MODE)
        return PauseReport(changed=changed, held=hold.held, not_held=hold.not_held, unkept=unkept)

    @skill(audience="operator")
    async def resume(self, call: Call, reason: str = "") -> str | UnkeptOrder:
        """Go on after a pause, and leave step mode.

        Args:
            reason: Shown to other operators.
        """
        changed = self._core_once(call).control.resume(_attributed(reason, call))
        return self._set(MODE, "goes on" if changed else "it is not paused")

    @skill(audience="operator")
    async def step(
        self, call: Call, mode: Literal["on", "off", "once"] = "once", waiting: str = ""
    ) -> str | UnkeptOrder:
        """Let calls begin one by one.

        Args:
            mode: ``on`` and ``off`` switch step mode, of which ``on`` ends a pause; ``once`` lets one call go that
                waits.
            waiting: The id of the call that was seen, for ``once``: no other one is let go then. By default it is
                the oldest.
        """
        control = self._core_once(call).control
        if mode == "off":
            changed = control.mode is Mode.STEPPING and control.resume()
            return self._set(MODE, "step mode is off" if changed else "it is not in step mode")
        ended = "; that ends the pause: what it held still goes on" if control.paused else ""
        if mode == "on":
            return self._set(MODE, f"step mode is on{ended}" if control.step_mode() else "it is in step mode already")
        gone = control.step(waiting)
        return self._set(
            MODE,
            f"{shown(gone.skill, gone.arguments)} goes{ended}" if gone else f"step mode is on; no call waits{ended}",
        )

    @skill(audience="operator")
    async def abort(self, call: Call, rollback: bool = False, reason: str = "") -> AbortReport:
        """End all missions and their calls.

        Args:
            rollback: Take back what the missions have done, newest first, as far as that is possible.
            reason: Passed to the calls.
        """
        # What only ends something is done as often as it is asked for.
        core = self._core_once(call) if rollback else self._core()
        report = await core.loop.abort(reason, rollback=rollback)
        return report.model_copy(update={"unkept": core.memory.unkept(MODE)})

    @skill(audience="operator")
    async def undo(self, call: Call, count: int = 1) -> UndoReport:
        """Take back the newest calls of the agent, newest first.

        Args:
            count: How many.
        """
        if count < 1:
            raise SkillError(f"count is {count}; 1 is the least")
        core = self._core_once(call)
        entries = core.memory.undo_log.newest(count)
        undone = await core.loop.undo(count)
        unkept = core.memory.unkept_for({mission for entry in entries for mission in entry.missions})
        return UndoReport(asked=count, found=len(entries), undone=tuple(undone), unkept=unkept)

    @skill(audience="operator")
    async def forget(self, call: Call) -> str | UnkeptOrder:
        """Begin a new conversation.

        The model sees nothing of what was said and done before, but what it is in the midst of. The record and what
        can be undone stay."""
        self._core_once(call).memory.forget()
        return self._set((EventKind.FORGOTTEN,), "what was said before is forgotten")

    @skill(audience="operator")
    async def typing(self) -> str:
        """The operator is in the middle of a sentence: updates of calls wait until it was said, within a bound."""
        core = self._core()
        core.control.typing(core.config.typing_bound_s)
        return "waits"

    @skill(audience="operator")
    async def approvals(self, approval: str = "") -> list[ApprovalView]:
        """List the calls that wait for an operator's decision.

        Args:
            approval: The id of one, of which more arguments fit into the answer than of many; one that was decided
                is there, too, with what has become of it.
        """
        approvals = self._core().gate_state.approvals
        return approvals_within(approvals.find(approval) if approval else approvals.pending())

    @skill(audience="operator")
    async def decide(
        self,
        call: Call,
        approval: str,
        decision: Literal["approve", "reject", "delete"],
        arguments: dict[str, Any] | None = None,
        reason: str = "",
        revision: Revision | None = None,
    ) -> ApprovalView:
        """Decide on a call that waits; another decision than the one that holds already is refused.

        Args:
            approval: Its id, see ``approvals``.
            decision: ``delete`` counts as a rejection that is not remembered.
            arguments: To be used instead of those that the model asked for.
            reason: Shown to the model.
            revision: The one that was seen; a decision on another one than the present one is refused.
        """
        core = self._core()
        approvals = core.gate_state.approvals
        decided = approvals.decide(approval, decision, arguments, reason, revision=revision, by=call.caller)
        (view,) = approvals_within([decided])
        return view.model_copy(update={"unkept": core.memory.unkept_for(view.missions) if view.binds else ""})

    @skill(audience="operator")
    async def amend(self, approval: str, arguments: dict[str, Any], revision: Revision | None = None) -> ApprovalView:
        """Change the arguments of a call that waits, without deciding.

        Args:
            approval: Its id, see ``approvals``.
            arguments: All of them.
            revision: The one that was seen, as for ``decide``.
        """
        (view,) = approvals_within([self._core().gate_state.approvals.amend(approval, arguments, revision=revision)])
        return view

    @skill(audience="operator")
    async def plans(self) -> list[dict[str, Any]]:
        """List the plans that the agent has written; one that was submitted waits among the approvals."""
        plans = [plan.to_dict() for plan in self._core().gate_state.plans.plans]
        return [within(plan, MAX_REPORT // len(plans)) for plan in plans]

    @skill(audience="operator")
    async def set_skill(self, call: Call, skill: str, enabled: bool) -> str | UnkeptOrder:
        """Allow or forbid the agent a skill.

        Args:
            skill: Its name.
            enabled: False to forbid it.
        """
        core = self._core()
        await core.catalog.refresh()
        withheld = core.gate_state.allowed.withheld(core.catalog.offered)
        known = {*core.catalog.offered, *core.gate_state.enabled.disabled} - set(withheld)
        if skill in withheld:
            raise SkillError(
                f"{skill!r} is not among the agent's skills: the setting `skills` of {core.name!r} lists them"
            )
        if skill not in known:
            raise SkillError(f"no skill is called {skill!r}{suggest(skill, known)}")
        changed = self._core_once(call).gate_state.enabled.set(skill, enabled)
        state = "enabled" if enabled else "disabled"
        return self._set(
            (EventKind.SKILL_SET, skill), f"{skill} is {state}" if changed else f"{skill} was {state} already"
        )

    @skill(audience="operator")
    async def set_model(self, call: Call, model: str) -> str | UnkeptOrder:
        """Ask another model from the next answer on.

        Args:
            model: As in the agent's config, ``"openai:MODEL"``.
        """
        await self._load_for(model)
        core = self._core_once(call)
        try:
            core.model_switch.use(model)
        except BlueprintError as error:
            # What is in a file is its owner's, and whoever gives orders to a robot may be somebody else.
            says_why = f"`dimos-streams check BLUEPRINT --set {self.name}.model={model}` says why"
            raise SkillError(f"{model!r} is no script of a model; {says_why}") from error
        except UserError as error:
            raise SkillError(str(error)) from error
        await core.model_switch.close_replaced()
        return self._set((EventKind.MODEL_SWITCH,), f"asks {model} from now on")

    async def _load_for(self, *models: str) -> None:
        """Import what models need beside the loop, which all other modules of the process may share."""
        for name in dict.fromkeys(name for model in models for name in late_imports(model)):
            with contextlib.suppress(ImportError):  # what makes the model says what is missing
                await self.run_blocking(importlib.import_module, name)

    def _set(self, setting: Setting, text: str) -> str | UnkeptOrder:
        """The result of an order that has set something, or has found it set."""
        unkept = self._core().memory.unkept(setting)
        return UnkeptOrder(text=text, unkept=unkept) if unkept else text

    def _core_once(self, call: Call) -> AgentCore:
        """The agent, for an order that is given by ``call`` and carried out at once, as one that was noted counts as
        done. A bridge repeats the request of a call until it hears of it: one that reaches the successor of a process
        that has carried it out is not carried out twice. Raises ``SkillError``."""
        core = self._core()
        core.memory.note_order(call.id, call.skill)
        return core

    def _core(self) -> AgentCore:
        core: AgentCore | None = getattr(self, "core", None)
        if core is None:
            raise SkillError(f"agent {self.name!r} is starting")
        return core


def _attributed(reason: str, call: Call) -> str:
    """The reason for an order, with the name of who has given it."""
    return named_reason(reason, call.caller) if reason else f"by {call.caller!r}"
