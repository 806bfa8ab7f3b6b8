"""Reports to a hub: what the robot offers and how it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dimos_streams import __version__, clock
from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bridge.fleet.attempts import FAILURES, Attempts
from dimos_streams.bridge.fleet.link_context import LinkContext
from dimos_streams.fleet.protocol import MAX_REPORT_BYTES, MAX_TEXT, REPORT_EVERY_S
from dimos_streams.fleet.reports import RobotReport
from dimos_streams.journal.journal import Journal
from dimos_streams.tool_stream.gateway import OfferedSkill

_LOOK_S = 1.0
_MAX_NOTES, _MAX_ROBOTS, _MAX_SKILLS = 20, 30, 1000


class HubReporter:
    """Reports every ``REPORT_EVERY_S``, and sooner when something has changed that operators look at."""

    def __init__(
        self,
        link: LinkContext,
        broker: Broker,
        journal: Journal,
        notes: Callable[[], list[str]],
    ) -> None:
        """``notes`` returns lines about what is not well with the bridge."""
        self._broker = broker
        self._journal = journal
        self._hub = link.hub
        self._attempts = Attempts(link, "reports", initial_s=0.5, longest_s=10.0)
        self._notes = notes
        self._wants_skills = True
        self._reported_skills: list[OfferedSkill] = []
        self._reported: tuple[object, ...] = ()
        self._due_at = 0.0

    async def run(self) -> None:
        """Report until cancelled."""
        while True:
            try:
                await self._look()
                await asyncio.sleep(_LOOK_S)
            except FAILURES as error:
                await self._attempts.pause_after(error)

    async def _look(self) -> None:
        """Report if it is time, or something has changed."""
        skills = [skill.model_copy(update={"shadowed": ()}) for skill in await self._broker.skills()]
        report = self._report()
        seen = (report.status, report.notes, report.stopped, report.robots, report.modules)
        new_skills = self._wants_skills or skills != self._reported_skills
        if not new_skills and seen == self._reported and clock.monotonic() < self._due_at:
            return
        if new_skills:
            report = with_skills(report, skills)
        answer = await self._hub.report(report)
        self._attempts.reset()
        self._wants_skills, self._reported_skills, self._reported = answer.wants_skills, skills, seen
        self._due_at = clock.monotonic() + (0.0 if answer.wants_skills else REPORT_EVERY_S)

    def _report(self) -> RobotReport:
        broker, journal = self._broker, self._journal
        notes = [note[:MAX_TEXT] for note in self._notes()[:_MAX_NOTES]]
        robots = tuple(sorted(broker.stops.robots() - {""}))[:_MAX_ROBOTS]
        return RobotReport(
            version=__version__,
            sent_utime=clock.utime(),
            journal=journal.identity.journal_id,
            last_offset=journal.last_offset,
            status="degraded" if notes else "ok",
            notes=tuple(notes),
            open_calls=len(broker.ledger.calls.open),
            modules=broker.directory.count,
            stopped=bool(broker.stops.stopped().stops),
            robots=tuple(name[:200] for name in robots),
        )


def with_skills(report: RobotReport, skills: list[OfferedSkill]) -> RobotReport:
    """The report with as many skills as it has room for."""
    taken: list[OfferedSkill] = []
    without = report.model_copy(update={"skills": taken, "skills_left_out": len(skills)})
    size = len(without.model_dump_json().encode())
    for skill in skills[:_MAX_SKILLS]:
        size += len(skill.model_dump_json().encode()) + 1
        if size > MAX_REPORT_BYTES:
            break
        taken.append(skill)
    return report.model_copy(update={"skills": taken, "skills_left_out": len(skills) - len(taken)})
