"""The agent's hold on its robot: sent to the velocity gates, and believed only when they have said that they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dimos_streams import clock
from dimos_streams.agent.record.agent_events import Emit, EventKind
from dimos_streams.common.listeners import Listeners
from dimos_streams.common.names import prefix_of
from dimos_streams.messages.dimos_streams import Hold, ModuleStatus
from dimos_streams.operator.gate_answers import VelocityGateAnswers
from dimos_streams.operator.gate_confirmation import GateConfirmation
from dimos_streams.operator.hold_beat import HoldBeat
from dimos_streams.operator.holding import LATE_GATE_S, VelocityGateState
from dimos_streams.operator.messages.hold import HoldView
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.module_view import ModuleView

_OUTPUT = "hold"
"""The one output on which an agent holds: its wiring says which gates listen to it."""


class RobotHold:
    """Holds the robot of one agent while it is wanted to be still, and knows which gates confirm that.

    The gates are those that were heard of in the agent's namespace, and any that listen where it holds; an agent in
    none is responsible for all.
    """

    def __init__(
        self,
        agent: str,
        *,
        why: Callable[[], str],
        emit: Emit,
        directory: ModuleDirectory | None,
        bound_s: float,
    ) -> None:
        """``why`` returns why the robot has to be still, empty if it need not; after ``changed`` it is asked again.
        Each gate has ``bound_s`` to confirm. Without a
        ``directory`` there are no gates."""
        self._agent = agent
        self._why = why
        self._emit = emit
        self._directory = directory
        self._gates = VelocityGateAnswers(directory, agent, lambda module: module.startswith(prefix_of(agent)))
        self._confirmation = GateConfirmation(directory)
        self._bound_s = bound_s
        self._beat = HoldBeat(agent)
        self._began: float | None = None
        self._let_go_at: float | None = None
        """The time at which its last hold ended; None before that."""
        self._reported: HoldView | None = None
        self.shown: HoldView | None = None
        """The gates' answer to the present hold; None if there is no hold, and while they may still be about to
        confirm."""
        self.shown_changed: Listeners[[]] = Listeners()
        """Called when ``shown`` is different."""

    def changed(self) -> None:
        """Look again whether the robot has to be still."""
        self._beat.changed()
        self._look()

    async def run(self, publish: Callable[[Hold], None], channel: str = "") -> None:
        """Send the hold to the gates, at once and again and again, until cancelled. ``channel`` is the one on which
        ``publish`` sends."""
        self._gates.channel = channel
        if self._directory is not None and channel and not channel.startswith(f"/{prefix_of(self._agent)}"):
            self._directory.hear_all()  # the gates are another namespace's

        def send_round() -> bool:
            why = self._why()
            self._beat.send(lambda _, message: publish(message), {_OUTPUT: why} if why else {})
            self._look()
            return bool(why)

        end = self._directory.listen(self._hear) if self._directory is not None else lambda: None
        try:
            await self._beat.run(send_round)
        finally:
            end()

    def gates(self) -> Iterator[tuple[ModuleView, VelocityGateState]]:
        """The robot's gates, with what they say now."""
        return self._gates.gates()

    def message(self) -> Hold:
        """The next message to the gates that the robot has to be still."""
        return self._beat.message(True, self._why())

    async def confirmed(self) -> HoldView:
        """Return the gates' answer to the present hold, once all confirm it or their time is over."""
        began = self._began if self._began is not None else clock.monotonic()
        return await self._confirmation.wait(
            lambda: self._gates.view(began),
            lambda view: view.confirmed or not view.not_held or not self._why(),
            began + self._bound_s,
        )

    def _hear(self, status: ModuleStatus) -> None:
        if self._began is not None or self._why():  # each agent hears every module of every robot
            self._look()
        elif self._agent in status.state_json and self._is_missed() and not self._beat.releasing:
            self._beat.release((_OUTPUT,))
            self._beat.changed()

    def _is_missed(self) -> bool:
        """Return whether a gate holds on though the hold has ended: it was down when that was said."""
        if self._let_go_at is None or clock.monotonic() - self._let_go_at > LATE_GATE_S:
            return False
        return any(self._agent in state.holds for _, state in self.gates())

    def _look(self) -> None:
        """Compare what the gates say with what was reported of them last."""
        now = clock.monotonic()
        if not self._why():
            self._let_go_at = self._let_go_at if self._began is None else now
            self._began, self._reported, shown = None, None, None
        else:
            self._began = began = now if self._began is None else self._began
            shown = self._gates.view(began)
            in_time = self._reported is None and now - began < self._bound_s
            if self._directory is None or (in_time and not shown.confirmed):
                shown = None
        if shown != self.shown:
            self.shown = shown
            self.shown_changed.notify()
        if shown is not None and not _says_the_same(shown, self._reported):
            self._reported = shown
            not_held = [gate.model_dump(mode="json") for gate in shown.not_held]
            text = f"the robot is {shown}"
            self._emit(EventKind.HOLD, (), text=text, held=list(shown.held), not_held=not_held)


def _says_the_same(one: HoldView, other: HoldView | None) -> bool:
    """Return whether two answers of the gates are equal apart from their texts."""
    if other is None or one.held != other.held:
        return False
    return [(gate.gate, gate.problem) for gate in one.not_held] == [
        (gate.gate, gate.problem) for gate in other.not_held
    ]
