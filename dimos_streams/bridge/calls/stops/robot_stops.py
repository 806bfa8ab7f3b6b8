"""Keeps robots still until an operator releases them, however a call that would move them is begun.

It needs no agent: the bridge itself holds the velocity gates, ends the motions that run, and begins no other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

from dimos_streams import clock
from dimos_streams.bridge.calls.ledger import Ledger
from dimos_streams.bridge.calls.sending.call_sender import CallSender
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.stops.cancels import wait_for_ends
from dimos_streams.bridge.calls.stops.gate_watch import CONFIRM_S, GateWatch
from dimos_streams.bridge.calls.stops.hold_channels import is_hold_channel, usual_channels
from dimos_streams.bridge.calls.stops.late_gates import LateGates
from dimos_streams.bridge.calls.stops.overruling import check_overruled, overrule_all
from dimos_streams.bridge.calls.stops.stop_file import StopFile
from dimos_streams.bridge.calls.stops.stop_state import StopState, is_of
from dimos_streams.bus import Bus
from dimos_streams.common.listeners import Listeners
from dimos_streams.common.names import is_in, namespace_of
from dimos_streams.common.readable.listed import listed
from dimos_streams.common.readable.reasons import joined_reasons
from dimos_streams.common.secrets import redacted
from dimos_streams.common.tasks import end_tasks
from dimos_streams.errors import CallRejectedError, ConflictError, UnknownRobotError
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.operator.hold_beat import HoldBeat
from dimos_streams.operator.holding import STOP_ROBOT
from dimos_streams.operator.messages.stop import (
    EVERY_ROBOT,
    ReleaseReport,
    Stop,
    StoppedRobots,
    StopReport,
)
from dimos_streams.operator.robot_orders import NO_ORDER
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.hosting.settings_change import SET
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.module_view import ModuleView
from dimos_streams.tool_stream.overtaken import overtaken
from dimos_streams.tool_stream.protocol.bounds import MAX_REASON
from dimos_streams.tool_stream.protocol.close_data import STOPPED

_MAX_ROBOTS = 200
_logger = logging.getLogger(__name__)


class RobotStops:
    """Stops robots, and releases them, on an operator's order. Use from the bus's loop only."""

    def __init__(
        self, bus: Bus, ledger: Ledger, directory: ModuleDirectory, sender: CallSender, path: Path | None = None
    ) -> None:
        """``path`` is the file that keeps the orders; without one they end with the bridge."""
        self._ledger = ledger
        self._directory = directory
        self._sender = sender
        self._file = StopFile(path)
        self._state = StopState()
        self._bus = bus
        self._beat = HoldBeat(STOP_ROBOT, reason=STOPPED)
        self._gates = GateWatch(directory, lambda namespace: self._state.covering(namespace))
        self._late_gates = LateGates()
        self._tasks: list[asyncio.Task[None]] = []
        self._unlisten: Callable[[], None] = lambda: None
        self.ordered: Listeners[[]] = Listeners()
        """Called when ``orders`` are different."""

    @property
    def orders(self) -> Mapping[str, int]:
        """The number of each robot's newest order, see ``newest_order``."""
        return self._state.orders

    def start(self) -> None:
        """Take up the orders of an earlier life of the bridge, and hold at once what is stopped."""
        self._state = self._file.load()
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._beat.run(self._hold), name="stopped robots"),
            loop.create_task(self._file.probe(), name="disk of the stops"),
        ]
        self._unlisten = self._directory.listen(self._hear)

    async def stop(self) -> None:
        """Send nothing more; gates go on for ``MAX_VALID_S``. Twice is fine."""
        self._unlisten()
        tasks, self._tasks = self._tasks, []
        await end_tasks(*tasks)
        await self._file.close()

    def check(self, call: CallState, module: ModuleView, skill: SkillInfo) -> None:
        """Raise ``CallRejectedError`` for a call that may move a robot that is stopped, or that an order has ended
        before it could begin."""
        stop = self._covers(module.name) if skill.may_move else None
        if stop is not None:
            why = f" ({stop.reason})" if stop.reason else ""
            holds = "" if skill.moves else f", which holds {listed([*map(repr, skill.resources)])},"
            raise CallRejectedError(
                f"skill {skill.name!r}{holds} may move a robot that an operator has stopped{why}: nothing moves it"
                " until an operator releases it (`dimos-streams release-robot`)"
            )
        check_overruled(call, module.name, may_move=skill.may_move)
        newest = max((number for robot, number in self.orders.items() if is_of(module.name, robot)), default=NO_ORDER)
        if skill.may_move and call.robot_order is not None and call.robot_order < newest:
            raise CallRejectedError(overtaken(call.skill, "stop"))

    async def stop_robot(self, robot: str, reason: str) -> StopReport:
        """Have a robot, or every one, stand still until it is released. Return what came of it, after ``CONFIRM_S``
        at most and, where calls don't end, another ``CANCEL_OVERDUE_S``. Raises ``UnknownRobotError``."""
        await self.check_known(robot)
        began, reason = clock.monotonic(), redacted(reason)
        self._set(self._state.stop(Stop(robot=robot, utime=clock.utime(), reason=reason)))
        self._send()  # before anything that may take its time
        _logger.info("%s is stopped by an operator%s", robot or EVERY_ROBOT, f": {reason}" if reason else "")
        motions = [call for call in self._ledger.calls.open if self._moves(call) and is_of(call.module, robot)]
        self._cancel(motions, reason)
        overrule_all(self._ledger, "stop", robot)
        self._beat.changed()
        view, unsaved = await asyncio.gather(self._gates.wait_confirmed(robot, began), self._keep())
        calls = await wait_for_ends(motions)
        released = self._parts(robot, stopped=False)
        return StopReport(
            robot=robot, held=view.held, not_held=view.not_held, calls=calls, released=released, unsaved=unsaved
        )

    async def release(self, robot: str, seen: Collection[int] | None = None) -> ReleaseReport:
        """Let a robot, or every one, move again. Nothing goes on by itself. Return what came of it, after
        ``CONFIRM_S`` at most where a gate held. Raises ``UnknownRobotError``, and ``ConflictError`` for a stop that
        is not among those ``seen``, by their ``utime``; None stands for all."""
        if robot not in self._state.stops:
            self._check_known(robot)
        self._check_seen(robot, seen)
        before = self._state
        self._set(before.release(robot))
        # Gates may hold for a bridge that is gone, too.
        gates = self._gates.of(robot)
        channels = {state.channel for state in gates if is_hold_channel(state.channel)}
        self._late_gates.release(robot)
        self._release_on(channels | usual_channels([robot]))
        _logger.info("%s is released by an operator", robot or EVERY_ROBOT)
        changed = self._state != before or any(STOP_ROBOT in state.holds for state in gates)
        still_stopped, unsaved = await asyncio.gather(self._gates.held_by_others(robot), self._keep())
        return ReleaseReport(
            robot=robot,
            changed=changed,
            unsaved=unsaved,
            still_stopped=still_stopped,
            stopped_again=self._parts(robot, stopped=True),
        )

    def stopped(self) -> StoppedRobots:
        """The robots that are stopped now, with what their gates say."""
        if not self._state.stops:
            return StoppedRobots()
        view = self._gates.view("")
        return StoppedRobots(
            stops=tuple(self._state.stops.values()),
            released=tuple(sorted(self._state.released)),
            held=view.held,
            not_held=view.not_held,
        )

    def lost(self) -> list[str]:
        """The orders that are lost, or may be, because they can't be written down."""
        return self._file.lost()

    def robots(self) -> set[str]:
        """The namespaces that have a velocity gate, or a skill that moves: what may be stopped by name."""
        return self._gates.robots()

    async def check_known(self, robot: str) -> None:
        """Raise ``UnknownRobotError`` for what is no robot, nor every one. A bridge that has just begun to listen
        waits for a robot that it has not heard of: it is to be stopped."""
        await self._directory.meet(lambda: self._is_known(robot))
        self._check_known(robot)

    def _check_known(self, robot: str) -> None:
        if not self._is_known(robot):
            raise UnknownRobotError(robot, self.robots() - {""})

    def _is_known(self, robot: str) -> bool:
        return not robot or any(is_in(name, robot) for name in self.robots())

    def _set(self, state: StopState) -> None:
        before, self._state = self._state, state
        if state.orders != before.orders:
            self.ordered.notify()

    def _hold(self) -> bool:
        """Hold what is stopped once more, and end the motions in it; return whether anything is stopped."""
        self._send()
        if self._state.stops:
            self._cancel(filter(self._is_stopped_motion, self._ledger.calls.open), "")
        return bool(self._state.stops)

    def _send(self) -> None:
        """Send the present holds to each gate that they may concern."""
        self._beat.send(self._publish, self._reasons())

    def _release_on(self, channels: set[str]) -> None:
        self._beat.release(channels)
        self._beat.changed()

    def _hear(self, status: object) -> None:
        if self._late_gates.awaited and (channels := self._late_gates.channels(self._gates.unstopped())):
            self._release_on(channels)

    def _publish(self, channel: str, message: Hold) -> None:
        self._bus.publish(channel, encode(message))

    def _reasons(self) -> dict[str, str]:
        """The channels on which the gates of stopped robots listen, whether they were heard of or not, with why each
        is held: gates of several robots may listen on one."""
        known = sorted({*self._state.stops, *self.robots()})[:_MAX_ROBOTS]
        covered = ((name, stop) for name in known if (stop := self._state.covering(name)) is not None)
        usual = ((channel, stop) for name, stop in covered for channel in usual_channels([name]))
        reasons: dict[str, str] = {}
        for channel, stop in (*usual, *self._gates.channels()):
            reasons[channel] = joined_reasons(stop.reason, reasons.get(channel, ""), MAX_REASON)
        return reasons

    def _cancel(self, motions: Iterable[CallState], reason: str) -> None:
        for call in motions:
            self._sender.cancel(call, f"{STOPPED}{f': {reason}' if reason else ''}", stops_robot=True)

    async def _keep(self) -> str:
        return await self._file.keep(self._state, CONFIRM_S)

    def _covers(self, module: str) -> Stop | None:
        return self._state.covering(namespace_of(module))

    def _parts(self, robot: str, *, stopped: bool) -> tuple[str, ...]:
        """A robot and the known ones in it, as far as they are stopped now, or are not."""
        named = {robot, *(name for name in self.robots() if is_in(name, robot))}
        return tuple(sorted(name for name in named if (self._state.covering(name) is not None) == stopped))

    def _is_stopped_motion(self, call: CallState) -> bool:
        return self._covers(call.module) is not None and self._moves(call)

    def _moves(self, call: CallState) -> bool:
        """Return whether a call may move a robot. A call of an unknown skill may, if it is journalled."""
        if call.skill == SET:
            return False
        found = self._directory.named(call.skill)
        return call.journalled if found is None else found[1].may_move

    def _check_seen(self, robot: str, seen: Collection[int] | None) -> None:
        unseen = [stop for stop in self._state.undone_by(robot) if seen is not None and stop.utime not in seen]
        if unseen:
            newest = max(unseen, key=lambda stop: stop.utime)
            why = f" ({newest.reason})" if newest.reason else ""
            raise ConflictError(
                f"{newest.robot or EVERY_ROBOT} was stopped {max(0, clock.utime() - newest.utime) / 1e6:.0f} s"
                f" ago{why}, after what this release is about: whoever has seen that stop releases it",
                result=self.stopped().model_dump(mode="json"),
            )
