"""The robots of a fleet as clients see them: what they offer, how they are, which of them is meant."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection
from concurrent.futures import Executor
from functools import cached_property

from pydantic import TypeAdapter

from dimos_streams import clock
from dimos_streams.common.names import NAME_RULE, fleet_name, is_like_shortened, is_name, skill_meant
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.errors import UnknownSkillError
from dimos_streams.fleet.commands import two_robots
from dimos_streams.fleet.protocol import REPORT_EVERY_S
from dimos_streams.fleet.reports import RobotReport
from dimos_streams.hub.storage.robots import UnknownFleetRobotError
from dimos_streams.hub.storage.rows import RobotRow
from dimos_streams.hub.storage.storage import HubStorage
from dimos_streams.hub.threads import in_thread
from dimos_streams.skill import name_fault, public_names
from dimos_streams.tool_stream.gateway import OfferedSkill

_FRESH_S = 1.0
_SILENT_S = 3 * REPORT_EVERY_S
"""Time, in seconds, after which a robot that is connected, and reports again and again, counts as silent."""
_CLOCK_DIFFERS_US = 2_000_000
_SKILLS = TypeAdapter(list[OfferedSkill])
_MAX_LISTED = 200


class ListedRobot(FrozenModel):
    """A robot as ``GET /robots`` shows it."""

    name: str
    connected: bool
    """True if it takes commands now."""
    heard_s: float | None
    """Seconds since the hub last heard from it, None if it never has."""
    status: str
    """``ok`` or ``degraded``, as it said last, and ``degraded`` while two have its name; ``unreachable`` while
    it is not connected, and ``unknown`` before it has said anything."""
    notes: tuple[str, ...]
    """The things that are not well, a line each."""
    stopped: bool
    open_calls: int
    modules: int
    skills: int
    robots: tuple[str, ...]
    """Namespaces of the robots in its run, if it has several."""
    version: str
    to_come: int | None
    """Events that it has and that are not here, as of its last report; None if it has not said."""


class FleetRobot:
    """A robot and its skills."""

    def __init__(self, row: RobotRow, fleet: Collection[str] = ()) -> None:
        """``fleet`` are the names of all robots, by which names of skills are told apart."""
        self.row = row
        self.name = row.name
        self._fleet = fleet

    @cached_property
    def skills(self) -> dict[str, OfferedSkill]:
        """The skills by name, as the robot reported them, but for those with names that nobody can have."""
        return {skill.name: skill for skill, fault in self._reported if not fault}

    @cached_property
    def _reported(self) -> list[tuple[OfferedSkill, str]]:
        """The skills as the robot reported them, each with what is wrong with its names, empty if nothing is."""
        return [(skill, _name_fault(skill)) for skill in _SKILLS.validate_json(self.row.skills or "[]")]

    def take_over_skills(self, before: FleetRobot) -> None:
        """Take over the skills that were read already of the robot as it was before, if they are the same."""
        if "_reported" in before.__dict__ and before.row.skills == self.row.skills:
            self.__dict__["_reported"] = before._reported

    @property
    def offered(self) -> list[OfferedSkill]:
        """Its skills as those of a robot in a fleet, each with the robot's name before its own; none is available
        while it is not connected. Those whose names would be another robot's are left out."""
        here = {"robot": self.name} | ({} if self.row.connected else {"available": False})
        return [
            skill.model_copy(update={**here, "name": fleet_name(name, self.name)})
            for name, skill in self.skills.items()
            if self._names(name)
        ]

    def _names(self, skill: str) -> bool:
        """Return whether a skill with the robot's name before it is a name of this robot."""
        return robot_of(fleet_name(skill, self.name), self._fleet) in (None, self.name)

    @cached_property
    def report(self) -> RobotReport | None:
        """The robot's last report, without its skills; None before the first one."""
        return RobotReport.model_validate_json(self.row.report) if self.row.report else None

    @property
    def open_calls(self) -> int:
        """The number of open calls in its last report."""
        return self.report.open_calls if self.report else 0

    @property
    def _status(self) -> str:
        if self.report is None:
            return "unknown"
        if not self.row.connected:
            return "unreachable"
        return "degraded" if self.row.doubled else self.report.status

    @property
    def _notes(self) -> list[str]:
        """The texts for people about what is not as it should be: the hub's about two robots, its own, other ones of
        the hub."""
        report = self.report
        notes = list(report.notes) if report else []
        if self.row.doubled:
            notes.insert(0, two_robots(self.name))
        if self.row.clock_us is not None and abs(self.row.clock_us) > _CLOCK_DIFFERS_US:
            ahead = self.row.clock_us / 1e6
            side = "ahead of" if ahead > 0 else "behind"
            notes.append(f"its clock is {abs(ahead):.0f} s {side} the hub's: times of its events are off by as much")
        if report and report.skills_left_out:
            notes.append(f"{report.skills_left_out} of its skills have no room in its report")
        if faults := [fault for _, fault in self._reported if fault]:
            notes.append(f"{len(faults)} of its skills {'is' if len(faults) == 1 else 'are'} left out: {faults[0]}")
        if unnamed := ", ".join(sorted(skill for skill in self.skills if not self._names(skill))):
            notes.append(
                f"its skills {shortened(unnamed, _MAX_LISTED)} are called by `robot` and `skill` only: with its"
                " name before them, they are another robot's names"
            )
        return notes

    def _silence(self, heard_s: float | None) -> list[str]:
        """The note of a robot that is connected and says nothing."""
        if not self.row.connected or heard_s is None or heard_s <= _SILENT_S:
            return []
        return [f"it holds its connection, but was last heard of {heard_s:.0f} s ago: it may hang"]

    def view(self, now_utime: int) -> ListedRobot:
        """The view of it at a time."""
        report, heard = self.report, self.row.heard
        heard_s = None if heard is None else max(0.0, round((now_utime - heard) / 1e6, 1))
        silence = self._silence(heard_s)
        return ListedRobot(
            name=self.name,
            connected=self.row.connected,
            heard_s=heard_s,
            status="degraded" if silence else self._status,
            notes=(*silence, *self._notes),
            stopped=report.stopped if report else False,
            open_calls=self.open_calls,
            modules=report.modules if report else 0,
            skills=len(self.skills),
            robots=tuple(filter(is_name, report.robots)) if report else (),
            version=self.row.version,
            to_come=max(0, report.last_offset - (self.row.acknowledged or 0)) if report else None,
        )


def robot_of(name: str, fleet: Collection[str]) -> str | None:
    """The robot whose a skill's name is, ``r1_turn``; None if it begins with no robot's name. Of ``r`` and ``r_1`` it
    is the longer one for ``r_1_turn``. Robots have no say in it, so that none can take a name of another one."""
    ends = [at for at, sign in enumerate(name) if sign == "_"]
    return next((name[:at] for at in reversed(ends) if name[:at] in fleet), None)


class FleetView:
    """The robots of a fleet. Use from the loop only."""

    def __init__(self, storage: HubStorage, executor: Executor) -> None:
        self._storage = storage
        self._executor = executor
        self._robots: dict[str, FleetRobot] = {}
        self._read_at = self._changed_at = -math.inf
        self._turn = asyncio.Lock()

    @property
    def known(self) -> dict[str, FleetRobot]:
        """The robots as they were when somebody looked last; nothing is waited for."""
        return self._robots

    def forget(self) -> None:
        """Look again next time: a robot has changed."""
        self._changed_at = clock.monotonic()

    async def all(self) -> dict[str, FleetRobot]:
        """Return all robots by name, as they were a second ago at most, and not before ``forget``.

        Raises ``StorageUnavailableError``.
        """
        return await self._read_since(max(self._changed_at, clock.monotonic() - _FRESH_S))

    async def newest(self) -> dict[str, FleetRobot]:
        """Return all robots as they are now: nobody is refused for what was true a second ago, when a robot may have
        come to another hub since. Raises ``StorageUnavailableError``."""
        return await self._read_since(clock.monotonic())

    async def _read_since(self, time: float) -> dict[str, FleetRobot]:
        """Return all robots as of a read that began after a time: one serves everybody who asked before it began."""
        if self._read_at > time:
            return self._robots
        async with self._turn:
            if self._read_at <= time:
                began, self._read_at = clock.monotonic(), -math.inf  # whoever asks after a failure is told of it, too
                self._take(await in_thread(self._executor, self._storage.robots.all))
                self._read_at = began
            return self._robots

    def _take(self, rows: list[RobotRow]) -> None:
        before, names = self._robots, frozenset(row.name for row in rows)
        self._robots = {row.name: FleetRobot(row, names) for row in rows}
        for name, robot in self._robots.items():
            if (known := before.get(name)) is not None:
                robot.take_over_skills(known)

    async def find(self, name: str) -> FleetRobot:
        """The robot of a name. Raises ``UnknownFleetRobotError``."""
        robots = await self.all()
        if name not in robots:
            robots = await self.newest()
        if name not in robots:
            raise UnknownFleetRobotError(name, robots)
        return robots[name]

    async def meant(self, skill: str, *, is_own: bool = False) -> list[tuple[FleetRobot, str]]:
        """The robots that may be meant by a skill's name, and what each calls it: its own name, or one with the
        robot's before it, ``r1_turn`` or ``r1/turn``, which is that robot's alone, or, unless ``is_own``, the name by
        which models are offered that (see ``skill_meant``).

        Raises ``UnknownSkillError`` if there is none.
        """
        skill = public_names(skill)[0]
        look_up = _named if is_own else _meant
        if found := look_up(skill, await self.all()):
            return found
        robots = await self.newest()
        if found := look_up(skill, robots):
            return found
        raise UnknownSkillError(skill, {each.name for robot in robots.values() for each in robot.offered})


def _meant(name: str, robots: dict[str, FleetRobot]) -> list[tuple[FleetRobot, str]]:
    if not is_like_shortened(name):
        return _named(name, robots)  # thousands of skills are not looked through
    offered = {each.name for robot in robots.values() for each in robot.offered}
    return _named(skill_meant(name, offered) or name, robots)


def _named(skill: str, robots: dict[str, FleetRobot]) -> list[tuple[FleetRobot, str]]:
    owner = robot_of(skill, robots)
    if owner is None:
        return [(robot, skill) for robot in robots.values() if skill in robot.skills]
    names = skill.removeprefix(f"{owner}_"), skill
    return [(robots[owner], name) for name in names if name in robots[owner].skills][:1]


def _name_fault(skill: OfferedSkill) -> str:
    """Return which name in a robot's skill can't be one, with the rule; empty if all can."""
    if not is_name(skill.module):
        return f"its module is {shortened(repr(skill.module), _MAX_LISTED)}; {NAME_RULE}"
    return name_fault(skill)
