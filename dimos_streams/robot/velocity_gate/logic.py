"""The decisions of the velocity gate, free of I/O: which source counts, how fast, and when to stop.

Time is handed in, in seconds of any clock that does not go back.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Literal

from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.messages.scan import free_distance, hits, looks, why_blind
from dimos_streams.messages.sensor_msgs import LaserScan
from dimos_streams.operator.holding import HOLDS_KNOWN_AFTER_S, STOP_ROBOT, HoldTable
from dimos_streams.robot.velocity import STILL, Velocity
from dimos_streams.robot.velocity_gate.config import VelocityGateConfig

Source = Literal["teleop", "skill"]


@dataclass(frozen=True, slots=True)
class _VelocityCommand:
    velocity: Velocity
    at: float


@dataclass(frozen=True)
class _Scan:
    message: LaserScan

    @functools.cached_property
    def points(self) -> list[complex]:
        """The points that were hit, in the base's frame. They are computed lazily, since a robot that stands needs
        none."""
        return hits(self.message)


class VelocityGateLogic:
    """Holds the newest command of each source and the newest scan, and says what the base may do now.

    With ``needs_scan``, nothing moves sideways or ahead without a fresh scan.
    """

    def __init__(self, limits: VelocityGateConfig, *, needs_scan: bool, name: str = "gate") -> None:
        """``name`` is for the log."""
        self.limits = limits
        self.needs_scan = needs_scan
        self._commands: dict[Source, _VelocityCommand] = {}
        self._scan: _Scan | None = None
        self._scanned_at: float | None = None
        self._blind = ""
        """The reason why the newest scan is of no use; empty if it is of use, or none has come."""
        self.trouble = ""
        """The reason, for operators, why the last decision lacked a scan of the direction of motion; otherwise
        empty."""
        self._last = STILL
        self._decided_at: float | None = None
        self._began_at: float | None = None
        self.holds = HoldTable(name)
        """The holds: while somebody holds, skills can't move the base; while an operator has stopped it, nobody
        can."""
        self._knows_holds_from = -math.inf

    def listen(self, now: float, for_s: float = HOLDS_KNOWN_AFTER_S) -> None:
        """Let nothing move the base until holds that last have been repeated, since some may have been missed until
        now."""
        self._knows_holds_from = max(self._knows_holds_from, now + for_s)

    def hold(self, message: Hold, now: float) -> None:
        """Take a hold, or its end. After the end of an operator's stop nothing moves until others that also stop the
        robot, such as other runs, have had time to repeat their stop; nor while a stop is repeated whose messages
        are dated before that end."""
        before = self.holds.stopped(now)
        self.holds.update(message, now)
        if before or (message.hold and message.source == STOP_ROBOT):
            self.listen(now)

    def command(self, source: Source, velocity: Velocity, now: float) -> None:
        """Take a command of finite values, see ``velocity_of``."""
        self._commands[source] = _VelocityCommand(velocity, now)

    def scan(self, scan: LaserScan, now: float) -> None:
        """Take a scan of the base's frame. One that is of no use, see ``why_blind``, is ignored."""
        self._blind = why_blind(scan)
        if self._blind:
            return
        self._scan = _Scan(scan)
        self._scanned_at = now

    def commanded(self, now: float) -> bool:
        """Return whether any source has sent a command lately, even one to stand."""
        timeout = max(self.limits.command_timeout_s, self.limits.teleop_hold_s)
        return any(now - command.at <= timeout for command in self._commands.values())

    def decide(self, now: float) -> Velocity:
        """Return the velocity of the base from now on. Call at a steady rate: the increase of speed depends on
        the time since the last call."""
        elapsed = 0.0 if self._decided_at is None else now - self._decided_at
        self._decided_at, self.trouble = now, ""
        if self._began_at is None:
            self._began_at = now
        heeded = self._heeded(now)
        self._last = STILL if heeded is None else self._safe(self._towards(self._limited(heeded), elapsed), now)
        return self._last

    def _heeded(self, now: float) -> Velocity | None:
        """The command of the highest source that is fresh and may move the base, or None if there is none."""
        teleop, skill = self._commands.get("teleop"), self._commands.get("skill")
        if self.holds.stopped(now) or now < self._knows_holds_from:
            return None
        if teleop is not None and now - teleop.at <= self.limits.command_timeout_s:
            return teleop.velocity
        if teleop is not None and now - teleop.at <= self.limits.teleop_hold_s:
            return None
        if skill is not None and now - skill.at <= self.limits.command_timeout_s:
            return STILL if self.holds.held(now) else skill.velocity
        return None

    def _limited(self, command: Velocity) -> Velocity:
        speed = math.hypot(command.vx, command.vy)
        if not math.isfinite(speed):  # of finite parts: their hypotenuse overflows
            return STILL
        turn = max(-self.limits.max_turn, min(self.limits.max_turn, command.wz))
        return _with_speed(Velocity(command.vx, command.vy, turn), min(speed, self.limits.max_speed))

    def _towards(self, command: Velocity, elapsed: float) -> Velocity:
        """Return the velocity as near to the command as the accelerations allow, from the last decision on. Speeding
        up is gradual. What the command has less of, or not at all, goes at once: the base has its own ramp."""
        last, speed = self._last, math.hypot(command.vx, command.vy)
        along = (last.vx * command.vx + last.vy * command.vy) / speed if speed > 0.0 else 0.0
        turned = abs(last.wz) if last.wz * command.wz > 0.0 else 0.0
        turn = min(abs(command.wz), turned + self.limits.turn_acceleration * elapsed)
        velocity = Velocity(command.vx, command.vy, math.copysign(turn, command.wz))
        return _with_speed(velocity, min(speed, max(0.0, along) + self.limits.acceleration * elapsed))

    def _safe(self, velocity: Velocity, now: float) -> Velocity:
        """Return the same velocity, slowed before obstacles. Stopping is at once: the base has its own ramp."""
        speed = math.hypot(velocity.vx, velocity.vy)
        if speed == 0.0:
            return velocity
        if self._scanned_at is None or now - self._scanned_at > self.limits.scan_timeout_s:
            if not self.needs_scan:
                return velocity
            self.trouble = f"{self._without_scan(now)}: the gate only lets the robot turn"
            return _with_speed(velocity, 0.0)
        direction = math.atan2(velocity.vy, velocity.vx)
        if self._scan is not None and not looks(self._scan.message, direction):
            slowest = self.limits.unseen_speed
            self.trouble = f"no ray of the scan was measured where the robot goes: at most {slowest:g} m/s"
            speed = min(speed, slowest)
        free = self.free_distance(direction) - self.limits.stop_distance
        return _with_speed(velocity, min(speed, self._speed_to_stop_within(free)))

    def _without_scan(self, now: float) -> str:
        since = self._scanned_at if self._scanned_at is not None else self._began_at
        silent_s = 0.0 if since is None else now - since
        return f"the scan {self._blind}" if self._blind else f"no scan for {silent_s:.0f} s"

    def free_distance(self, direction: float) -> float:
        """Metres that the hull may go in a direction (of the base's frame) until it meets a seen point."""
        points = self._scan.points if self._scan is not None else ()
        return free_distance(points, direction, self.limits.robot_radius + self.limits.side_margin)

    def _speed_to_stop_within(self, distance: float) -> float:
        """The speed from which reaction and braking take this distance."""
        if distance <= 0.0:
            return 0.0
        lost = self.limits.braking * self.limits.reaction_s
        return math.sqrt(lost**2 + 2.0 * self.limits.braking * distance) - lost


def _with_speed(velocity: Velocity, speed: float) -> Velocity:
    """Return the same direction and turn at this speed."""
    now = math.hypot(velocity.vx, velocity.vy)
    if now == 0.0 or speed <= 0.0:
        return Velocity(0.0, 0.0, velocity.wz)
    scale = min(1.0, speed / now)
    return Velocity(velocity.vx * scale, velocity.vy * scale, velocity.wz)
