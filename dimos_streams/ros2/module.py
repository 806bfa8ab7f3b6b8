"""The module that makes a robot which runs ROS 2 one of this package's robots."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from dimos_streams import clock
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.errors import MessageError, UserError
from dimos_streams.messages.base import Message
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.messages.geometry_msgs import Twist
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.sensor_msgs import CameraInfo, Image, LaserScan
from dimos_streams.messages.tf2_msgs import TFMessage
from dimos_streams.messages.time import header
from dimos_streams.module import ConfigFault, Module
from dimos_streams.operator.holding import HoldInput
from dimos_streams.ros2.actions.client import ActionClient
from dimos_streams.ros2.actions.goal import owner_of_goals
from dimos_streams.ros2.actions.skills import skill_of, type_of
from dimos_streams.ros2.config import ActionSetting, Ros2RobotConfig
from dimos_streams.ros2.conversions import FixedFrames, turned
from dimos_streams.ros2.deafness import DEAF_S, MUTE_S, Absences, Deafness
from dimos_streams.ros2.names import absolute
from dimos_streams.ros2.participant import Participant
from dimos_streams.ros2.topics import Route, routes_of, topic_faults
from dimos_streams.ros2.velocity import VelocityRelay
from dimos_streams.ros2.watch import Trouble, troubles_of
from dimos_streams.ros2.wire import DdsError, TopicReader, TopicWriter, Wire
from dimos_streams.skill import SkillSpec
from dimos_streams.streams import In, Out

PERIOD_S = 0.05
WATCH_S = 0.5
GRACE_S = 2.0
"""Seconds after the start in which a participant that has not been found is not reported."""


class Ros2Robot(Module):
    """A robot that runs ROS 2: its topics are this module's streams, by the table in ``topics``.

    A subclass with more streams (``battery: Out[BatteryState]``) may have more rows. Velocities come from the
    velocity gate; when it is silent, or what the robot needs to see is, the robot gets zeros. Health says in a line
    each what does not come through, and why. The rows of ``actions`` are skills.
    """

    config: Ros2RobotConfig
    packages = ("cyclonedds",)
    shared_outputs = frozenset({"nav_vel", "tf", "tf_static"})

    cmd_vel: In[Twist] = In(required=False)
    hold: In[Hold] = In(required=False, external=True)

    odom: Out[Odometry]
    scan: Out[LaserScan]
    color_image: Out[Image]
    depth_image: Out[Image]
    camera_info: Out[CameraInfo]
    tf: Out[TFMessage]
    tf_static: Out[TFMessage]
    """What ROS says once of frames, again and again, without stamps: nothing keeps it for those who come later."""
    nav_vel: Out[Twist]
    """Velocities of the robot's own navigation, to be led through the velocity gate as a skill's."""

    @classmethod
    def problems(cls, config: Any) -> Iterator[ConfigFault]:
        """See ``Module``: rows of the tables that name no stream, a type that can't be, or another row's action."""
        yield from topic_faults(config, cls.streams())
        rows: dict[str, str] = {}
        for name, setting in config.actions.items():
            action = absolute(setting.action, config.namespace)
            if (other := rows.setdefault(action, name)) != name:
                text = f"{action} is the action of {other!r} already: an action has one row, and one goal at a time"
                yield ConfigFault(("actions", name), text)
            try:
                skill_of(name, setting)
            except UserError as error:
                yield ConfigFault(("actions", name), str(error))

    @classmethod
    def configured_skills(cls, config: Any) -> Mapping[str, SkillSpec]:
        """See ``Module``: those of the class, and one for each row of the table of actions."""
        actions = {name: skill_of(name, setting) for name, setting in config.actions.items()}
        return {**super().configured_skills(config), **actions}

    def wire(self) -> Wire:
        """The participant that is used; for tests to replace."""
        return Participant(self.config.domain_id, self.config.interface, self.config.peers)

    async def start(self) -> None:
        """Take part in the domain and connect the topics."""
        self._limited_log = LimitedLog(self.log)
        self._routes = routes_of(self.config, self.streams())
        self._relay = VelocityRelay(self.config.cmd_timeout_s)
        self._scan_frame = ""
        self._fixed_frames = FixedFrames()
        self._heard: dict[str, float] = {}
        self._writers: dict[str, TopicWriter] = {}
        self._readers: dict[str, TopicReader] = {}
        self._deafness = Deafness()
        self._absences = Absences(GRACE_S)
        self._troubles: dict[str, Trouble] = {}
        self._holds = HoldInput(self.hold, self.name)
        self.hold.on_message(lambda _: self._report_hold())
        self._wire = self.wire()
        self._clients = {name: self._client(row) for name, row in self.config.actions.items()}
        await self._wire.open()
        for route in self._routes:
            self._connect(route)
        for client in self._clients.values():
            client.connect()

    async def run(self) -> None:
        """Send velocities and watch what comes through, until the module ends.

        Raises ``DdsError`` when nothing is heard any more, so that the module is restarted.
        """
        began = watched = clock.monotonic()
        while True:
            now = clock.monotonic()
            self._wire.check()
            self._send_velocity()
            if now - watched >= WATCH_S:
                watched = now
                for client in self._clients.values():
                    client.tick()
                self._absences.look(now, self._there())
                self._check_heard(now)
                self._repeat_fixed_frames()
                if now - began >= GRACE_S:
                    self._report(now)
            await asyncio.sleep(PERIOD_S)

    async def stop(self) -> None:
        """Leave the base at rest, if it was this module that moved it, and the domain."""
        if not hasattr(self, "_wire"):
            return
        try:
            self._relay.part()
            while self._relay.due_zeros:
                self._send_velocity()
                await asyncio.sleep(PERIOD_S)
        finally:
            await self._wire.close()

    def client(self, skill: str) -> ActionClient:
        """The client of a skill's action."""
        return self._clients[skill]

    @property
    def held(self) -> bool:
        """True if somebody holds the robot still."""
        return self._holds.held

    @property
    def blind(self) -> str:
        """The reason why the robot's place can't be seen; empty if it can."""
        silent = self._silent(clock.monotonic())
        topics = [route.topic for route in self._routes if route.stream.name in silent]
        return f"{', '.join(topics)} can't be heard" if topics else ""

    def _report_hold(self) -> None:
        """Have goals end at once."""
        if self.held:
            for client in self._clients.values():
                client.wake()

    def _client(self, setting: ActionSetting) -> ActionClient:
        action = absolute(setting.action, self.config.namespace)
        kind, owner = type_of(setting), owner_of_goals(self.name)
        return ActionClient(self._wire, action, kind, setting.answer_timeout_s, owner, moves=setting.moves)

    def _connect(self, route: Route) -> None:
        if route.from_ros:
            deliver = partial(self._give_on, route)
            reader = self._wire.reader(route.dds_topic, route.struct, route.quality, route.read, deliver)
            self._readers[route.stream.name] = reader
            return
        stream: In[Any] = getattr(self, route.stream.name)
        self._writers[route.stream.name] = self._wire.writer(route.dds_topic, route.struct, route.quality)
        if stream is self.cmd_vel:
            self._velocity_route = route
            stream.on_message(self._take_velocity)
        else:
            stream.on_message(partial(self._send, route))

    def _give_on(self, route: Route, message: Message) -> None:
        self._heard[route.stream.name] = clock.monotonic()
        if isinstance(message, LaserScan):
            message = self._ahead(message)
        output: Out[Any] = getattr(self, route.stream.name)
        if output is self.tf_static and isinstance(message, TFMessage):
            self._fixed_frames.add(message)
            return
        if output is self.nav_vel and self._navigation_ends:
            return
        if output.wanted:
            output.publish(message)

    def _repeat_fixed_frames(self) -> None:
        frames = self._fixed_frames.message
        if frames is not None and self.tf_static.wanted:
            self.tf_static.publish(frames)

    @property
    def _navigation_ends(self) -> bool:
        """True if a goal that moves the robot was cancelled and has not ended: its velocities are not meant."""
        actions = self.config.actions
        return any(client.ending for name, client in self._clients.items() if actions[name].moves)

    def _ahead(self, scan: LaserScan) -> LaserScan:
        """The scan as the gate and skills take it, whose zero is ahead."""
        yaw_deg, frame = self.config.scan_yaw_deg, scan.header.frame_id
        if yaw_deg is None and frame not in (self.config.cmd_frame, self._scan_frame):
            self._scan_frame = frame
            self.log.warning("the zero of scans of the frame %r is taken for ahead: set scan_yaw_deg", frame[:100])
        return turned(scan, math.radians(yaw_deg)) if yaw_deg else scan

    def _take_velocity(self, velocity: Twist) -> None:
        """Take a velocity; the newest one is sent once the loop has taken in all that has come."""
        self._relay.command(velocity)
        asyncio.get_running_loop().call_soon(self._send_velocity)

    def _send_velocity(self) -> None:
        now = clock.monotonic()
        self._relay.look(now)
        velocity = self._relay.due(now, free=not self._silent(now))
        if velocity is not None and "cmd_vel" in self._writers:
            self._send(self._velocity_route, velocity)

    def _send(self, route: Route, message: Message) -> None:
        stamp = header(self.config.cmd_frame, clock.utime())
        try:
            self._writers[route.stream.name].write(route.write(message, stamp))
        except (DdsError, MessageError) as error:
            self._limited_log.warning("not sent to ROS: %s", error)

    def _silent(self, now: float) -> dict[str, float]:
        """The needed streams that are silent, with the seconds for which they are; infinite for those never heard."""
        ages = {name: now - self._heard.get(name, -math.inf) for name in self.config.needed}
        return {name: age for name, age in ages.items() if age > self.config.needed_timeout_s}

    def _there(self) -> dict[str, bool]:
        """The topics and actions, with whether DDS has connected them with anybody's."""
        ends: dict[str, TopicReader | TopicWriter] = {**self._readers, **self._writers}
        actions = {f"actions.{name}": client.there for name, client in self._clients.items()}
        return {name: bool(end.matched) for name, end in ends.items()} | actions

    def _check_heard(self, now: float) -> None:
        """Raise ``DdsError`` for a topic or an action that can't be reached any more: only a process that begins anew
        reaches it again. While an action's goal may run this waits for its end, since nobody would remember the goal,
        unless its server can't be reached either."""
        if self._wire.mute_s() >= MUTE_S and self._misses(now):
            text = f"somebody in DDS is back, and has not announced any topic for {MUTE_S:.0f} s: DDS is entered anew"
            raise DdsError(text)
        matched = [name for name in self.config.needed if name in self._readers and self._readers[name].matched]
        deaf = self._deafness.deaf(now, matched, self._heard)
        if deaf and not any(client.has_goals for client in self._clients.values()):
            topics = ", ".join(route.topic for route in self._routes if route.stream.name in deaf)
            raise DdsError(f"{topics} is there, and nothing of it was heard for {DEAF_S:.0f} s: DDS is entered anew")

    def _misses(self, now: float) -> bool:
        """Return whether it is worth it to leave DDS for somebody who is mute: a needed stream is silent, or what
        they were on was there before and is not, and no goal is under way at a server that is. Else what is missed is
        somebody else's."""
        if self._silent(now):
            return True
        theirs, missed = self._wire.mute_topics(), self._absences.missed(now)
        topics = {route.dds_topic for route in self._routes if route.stream.name in missed}
        topics.update(*(client.topics for name, client in self._clients.items() if f"actions.{name}" in missed))
        return not topics.isdisjoint(theirs) and not any(
            client.there and client.has_goals for client in self._clients.values()
        )

    def _skipped(self, now: float) -> dict[str, str]:
        """The streams of whose topics nothing could be decoded for a while, with the reasons."""
        skipped = {name: reader.skipped for name, reader in self._readers.items()}
        return {
            name: why for name, why in skipped.items() if why and now - self._heard.get(name, -math.inf) > GRACE_S
        }

    def _report(self, now: float) -> None:
        """Say in the health what is wrong, and in the log what of it has changed."""
        where = f"domain {self.config.domain_id} on the interface {self.config.interface!r}"
        # Goals first: a health is cut where it is shown, and nothing is more urgent than a robot that goes on.
        found = [Trouble(client.trouble, client.trouble) for client in self._clients.values() if client.trouble]
        publishers = {name: self._readers[name].matched for name in self.config.needed if name in self._readers}
        endpoints, unmatched = self._wire.endpoints(), self._absences.absent(now)
        silent, skipped = self._silent(now), self._skipped(now)
        found += troubles_of(self._routes, endpoints, silent, unmatched, skipped, publishers, where)
        before, self._troubles = self._troubles, {trouble.key: trouble for trouble in found}
        for trouble in found:
            if trouble.key not in before:
                self.log.warning("%s", trouble.text)
        for key, trouble in before.items():
            if key not in self._troubles:
                self.log.info("no longer: %s", trouble.text)
        self.health = "; ".join(trouble.text for trouble in found) or "ok"
