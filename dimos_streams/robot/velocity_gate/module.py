"""The module that every velocity passes on its way to the base's motors."""

import asyncio
import logging
import math
from collections.abc import Mapping, Sequence

from dimos_streams import clock
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.process.threads import in_own_thread
from dimos_streams.errors import SettingsError
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.messages.sensor_msgs import LaserScan
from dimos_streams.messages.velocities import PARTING_ZEROS, is_sound
from dimos_streams.module import Module
from dimos_streams.operator.holding import GATE, HOLDS_KNOWN_AFTER_S, MAX_VALID_S, VelocityGateState
from dimos_streams.robot.velocity import STILL, Velocity, velocity_of
from dimos_streams.robot.velocity_gate.config import VelocityGateConfig
from dimos_streams.robot.velocity_gate.hold_file import HoldFile
from dimos_streams.robot.velocity_gate.logic import Source, VelocityGateLogic
from dimos_streams.streams import In, Out

PERIOD_S = 0.05
_ABSURD = 5.0
"""A command that is this many times a limit is logged: its sender may use other units."""
_SLOW = 0.1
"""The limit, m/s or rad/s, with which a command is compared for that where the real one is lower: it is not absurd to
tell a base that only turns to drive."""
_REASONS_EVERY_S = 1.0
"""The least time, in seconds, between two reports that differ in reasons alone: a reason that has a distance in it is
another one with each message."""
_log = LimitedLog(logging.getLogger(__name__))


class VelocityGate(Module):
    """Ranks the sources of velocities, limits them, stops before obstacles and zeroes what is stale.

    `teleop_vel` outranks `skill_vel`. While a source holds the robot, skills can't move the base; teleop still can,
    unless the hold is an operator's stop. After its start, or after its process did not run for
    `HOLDS_KNOWN_AFTER_S`, the gate lets nothing move the base for that time: it first has to hear which sources hold.
    Sources that held when a gate of this name ended in the same run go on holding as if they had just said so (see
    `HoldFile`), since a process that was killed together with the gate may take long to be back.

    Heartbeats list the sources that it holds for, see `VelocityGateState`. Its health says what was odd in a hold,
    why holds can't be written to the file, or that for want of a scan of where it goes the robot may only turn or
    creep.

    It publishes at 20 Hz while somebody commands, or an operator has stopped the robot; then a few zeros, then
    nothing, so that another program can drive the base unbraked.
    """

    config: VelocityGateConfig
    exclusive_outputs = frozenset({"cmd_vel"})

    skill_vel: In[Twist] = In(required=False)
    teleop_vel: In[Twist] = In(required=False)
    scan: In[LaserScan] = In(required=False, fresh=True)
    hold: In[Hold] = In(required=False, external=True)

    cmd_vel: Out[Twist]

    _quiet = PARTING_ZEROS + 1
    """The number of periods since the last one in which there was a velocity to publish."""
    _reported: tuple[tuple[str, ...], VelocityGateConfig, bool] | None = None
    """The values from which the last reported state was made, without the reasons."""
    _reasons: tuple[str, ...] = ()
    """The reasons in that state."""
    _reasons_due = 0.0
    """The time, in seconds, from which a state may be reported that differs in its reasons alone."""

    @classmethod
    def longest_gaps(cls, config: VelocityGateConfig) -> Mapping[str, float]:
        """See `Module`."""
        return {"scan": config.scan_timeout_s}

    async def start(self) -> None:
        """Listen."""
        self.logic = VelocityGateLogic(self.config, needs_scan=self.scan.wired, name=f"velocity gate {self.name!r}")
        await self._recall()
        self._report_state(clock.monotonic(), still=True)
        self.skill_vel.on_message(lambda twist: self._take("skill", twist))
        self.teleop_vel.on_message(lambda twist: self._take("teleop", twist))
        self.scan.on_message(self._take_scan)
        self.hold.on_message(lambda hold: self.logic.hold(hold, clock.monotonic()))

    async def run(self) -> None:
        """Decide and publish, period for period."""
        due = clock.monotonic()
        self._listen(due)
        while True:
            now = clock.monotonic()
            if now - due > HOLDS_KNOWN_AFTER_S:
                self._listen(now)  # it was held up itself
            velocity = self.logic.decide(now)
            busy = self.logic.commanded(now) or self.logic.holds.stopped(now)
            self._quiet = 0 if busy else min(self._quiet, PARTING_ZEROS) + 1
            if self._quiet <= PARTING_ZEROS:
                self.cmd_vel.publish(_twist(velocity))
            self._write_down(now)
            self._report_state(now, still=velocity == STILL)
            due = max(due + PERIOD_S, now)
            await asyncio.sleep(due - now)

    async def stop(self) -> None:
        """Leave the base at rest, if it was this gate that moved it."""
        if self._quiet <= PARTING_ZEROS and self.cmd_vel.wanted:
            self.cmd_vel.publish(_twist(STILL))

    def on_settings(self, changed: frozenset[str]) -> None:
        """See `Module`: what its blueprint lets pass is the most that it ever lets pass."""
        for name in sorted(changed):
            most = getattr(self.configured, name)
            if getattr(self.config, name) > most:
                raise SettingsError({name: f"more than the blueprint's {most:g} is not possible while it runs"})
        self.logic.limits = self.config

    def _listen(self, now: float) -> None:
        if self.hold.wired:
            self.logic.listen(now)

    async def _recall(self) -> None:
        """Hold for those for whom the gate before held, and let nothing move where others may have held as well."""
        run_dir = self.context.run_dir
        self._file = HoldFile(run_dir, self.name) if run_dir is not None and self.hold.wired else None
        if self._file is None:
            return
        holds = await in_own_thread(self._file.load, clock.monotonic())
        now = clock.monotonic()
        if not self._file.complete:
            self.logic.listen(now, MAX_VALID_S)
        for hold in holds:
            self.logic.holds.update(hold, now)

    def _write_down(self, now: float) -> None:
        """Have a change of the holds written, while the gate goes on, because a disk may take its time."""
        holds = self.logic.holds.holding(now)
        if self._file is not None and self._file.is_due(holds, now):
            self._file.begin()
            self.spawn(self._save(self._file, holds), name="hold file")

    async def _save(self, file: HoldFile, holds: Sequence[Hold]) -> None:
        now = clock.monotonic()
        try:
            await in_own_thread(file.save, holds, now)
        except OSError as error:  # there is no thread: `save` itself raises none
            file.not_saved(error, now)

    def _take(self, source: Source, twist: Twist) -> None:
        self.logic.command(source, velocity_of(twist), clock.monotonic())
        self._note_absurd(source, twist)

    def _note_absurd(self, source: Source, twist: Twist) -> None:
        speed, turn = math.hypot(twist.linear.x, twist.linear.y), abs(twist.angular.z)
        what = "velocity gate %r: %s wants %g m/s and %g rad/s"
        if not is_sound(twist) or not math.isfinite(speed):  # of finite parts: their hypotenuse overflows
            elsewhere = ", and what is not finite on another axis" if math.isfinite(speed + turn) else ""
            stands = f"{what}{elsewhere}: that counts as a command to stand"
            _log.warning(stands, self.name, source, speed, twist.angular.z)
            return
        limits = self.logic.limits
        if speed > _ABSURD * max(limits.max_speed, _SLOW) or turn > _ABSURD * max(limits.max_turn, _SLOW):
            most = (limits.max_speed, limits.max_turn)
            _log.warning(f"{what}; %g and %g pass at most", self.name, source, speed, twist.angular.z, *most)

    def _report_state(self, now: float, *, still: bool) -> None:
        """Say what operators have to know, once it is done."""
        trouble = self._file.trouble if self._file else ""
        self.health = self.logic.holds.note(now) or trouble or self.logic.trouble or "ok"
        holds, reasons, limits = self.logic.holds.sources(now), self.logic.holds.reasons(now), self.logic.limits
        if (holds, limits, still) == self._reported and (reasons == self._reasons or now < self._reasons_due):
            return
        self._reported, self._reasons, self._reasons_due = (holds, limits, still), reasons, now + _REASONS_EVERY_S
        state = VelocityGateState(
            listens=self.hold.wired,
            channel=self.hold.channel,
            holds=holds,
            reasons=reasons,
            still=still,
            max_speed=self.config.max_speed,
            max_turn=self.config.max_turn,
        )
        self.report_state({GATE: state.model_dump(mode="json")}, names=(state.channel, *state.holds))

    def _take_scan(self, scan: LaserScan) -> None:
        self.logic.scan(scan, clock.monotonic())


def _twist(velocity: Velocity) -> Twist:
    return Twist(linear=Vector3(x=velocity.vx, y=velocity.vy), angular=Vector3(z=velocity.wz))
