"""The one way to the base's motors: every velocity passes here."""

import asyncio
import json
import logging

from pydantic import Field

from dimos_streams import clock
from dimos_streams.limited_log import LimitedLog
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.messages.sensor_msgs import LaserScan
from dimos_streams.messages.std_msgs import String
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.robot.gate_logic import GateLimits, GateLogic, Source
from dimos_streams.robot.motion import STILL, Velocity
from dimos_streams.streams import In, Out

PERIOD_S = 0.05
PARTING_ZEROS = 5
IDLE_PERIODS = 10

_DEFAULTS = GateLimits()
_log = LimitedLog(logging.getLogger(__name__))


class VelocityGateConfig(ModuleConfig):
    """The limits of `GateLimits`, for blueprints."""

    max_speed: float = Field(_DEFAULTS.max_speed, ge=0.0, description="m/s, in any direction")
    max_turn: float = Field(_DEFAULTS.max_turn, ge=0.0, description="rad/s")
    acceleration: float = Field(_DEFAULTS.acceleration, gt=0.0, description="m/s²")
    turn_acceleration: float = Field(_DEFAULTS.turn_acceleration, gt=0.0, description="rad/s²")
    command_timeout_s: float = Field(
        _DEFAULTS.command_timeout_s, gt=0.0, le=0.35, description="a command older than this is zero"
    )
    teleop_hold_s: float = Field(
        _DEFAULTS.teleop_hold_s, ge=0.0, description="skills wait so long after the last teleop command"
    )
    hold_timeout_s: float = Field(
        _DEFAULTS.hold_timeout_s,
        gt=0.0,
        description="a hold that is not repeated for so long has ended; whoever holds may need a restart",
    )
    scan_timeout_s: float = Field(
        _DEFAULTS.scan_timeout_s, gt=0.0, description="without a scan for so long the base only turns"
    )
    robot_radius: float = Field(_DEFAULTS.robot_radius, gt=0.0)
    side_margin: float = Field(_DEFAULTS.side_margin, ge=0.0)
    stop_distance: float = Field(_DEFAULTS.stop_distance, ge=0.0, description="kept free before the hull, m")
    braking: float = Field(_DEFAULTS.braking, gt=0.0, description="deceleration that the base surely has, m/s²")
    reaction_s: float = Field(_DEFAULTS.reaction_s, ge=0.0)


class VelocityGate(Module):
    """Ranks the sources of velocities, limits them, stops before obstacles and zeroes what is stale.

    `teleop_vel` outranks `skill_vel`. While somebody holds (`hold`, JSON with `source` and `hold`, repeated while it
    lasts) skills can't move the base; teleop still can. Publishes at 20 Hz while somebody commands, then a
    few zeros, then zeros at 2 Hz.
    """

    config: VelocityGateConfig

    skill_vel: In[Twist] = In(required=False)
    teleop_vel: In[Twist] = In(required=False)
    scan: In[LaserScan] = In(required=False)
    hold: In[String] = In(queue=16, required=False)

    cmd_vel: Out[Twist]

    async def start(self) -> None:
        """Listen."""
        self.logic = GateLogic(GateLimits(**self.config.model_dump()), needs_scan=self.scan.wired)
        self.skill_vel.on_message(lambda twist: self._take("skill", twist))
        self.teleop_vel.on_message(lambda twist: self._take("teleop", twist))
        self.scan.on_message(self._take_scan)
        self.hold.on_message(self._take_hold)

    async def run(self) -> None:
        """Decide and publish, period for period."""
        quiet = PARTING_ZEROS
        due = clock.monotonic()
        while True:
            now = clock.monotonic()
            velocity = self.logic.decide(now)
            quiet = 0 if self.logic.commanded(now) or velocity != STILL else quiet + 1
            if quiet <= PARTING_ZEROS or quiet % IDLE_PERIODS == 0:
                self.cmd_vel.publish(_twist(velocity))
            due = max(due + PERIOD_S, now)
            await asyncio.sleep(due - now)

    async def stop(self) -> None:
        """Leave the base at rest."""
        if self.cmd_vel.wanted:
            self.cmd_vel.publish(_twist(STILL))

    def _take(self, source: Source, twist: Twist) -> None:
        velocity = Velocity(twist.linear.x, twist.linear.y, twist.angular.z)
        self.logic.command(source, velocity, clock.monotonic())

    def _take_hold(self, message: String) -> None:
        """What is no hold changes nothing."""
        try:
            fields = json.loads(message.data)
            source, holding = str(fields["source"]), fields["hold"] is True
        except (ValueError, TypeError, KeyError) as error:
            _log.warning("%s: skipped a hold that is none, %r: %s", self.name, message.data[:100], error)
            return
        self.logic.hold(source, holding, clock.monotonic())

    def _take_scan(self, scan: LaserScan) -> None:
        valid = (scan.range_min, scan.range_max)
        self.logic.scan(scan.ranges, scan.angle_min, scan.angle_increment, valid, clock.monotonic())


def _twist(velocity: Velocity) -> Twist:
    return Twist(linear=Vector3(x=velocity.vx, y=velocity.vy), angular=Vector3(z=velocity.wz))
