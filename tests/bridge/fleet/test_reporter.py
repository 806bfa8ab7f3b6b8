"""What a robot reports has room in a report, and comes again when a hub wants it or could not be reached."""

from __future__ import annotations

import asyncio
import logging
import random

import pytest

from dimos_streams.bridge.fleet.hub_requests import HubUnreachableError
from dimos_streams.bridge.fleet.link_context import LinkContext
from dimos_streams.bridge.fleet.reporter import HubReporter, with_skills
from dimos_streams.bridge.fleet.troubles import Troubles
from dimos_streams.common.secrets import know
from dimos_streams.fleet.protocol import MAX_REPORT_BYTES, MAX_TEXT, REPORT_EVERY_S
from dimos_streams.fleet.reports import Reported, RobotReport
from dimos_streams.tool_stream.gateway import OfferedSkill
from tests.bridge.fleet.fake_hub import FakeHub
from tests.bridge.scene import Worker, scene


@pytest.mark.feature("H2")
def test_skills_fill_the_room_that_the_rest_of_a_report_leaves_and_no_more() -> None:
    report = RobotReport(
        version="1",
        sent_utime=1,
        journal="journal-1",
        last_offset=1,
        status="ok",
        notes=("\x01" * MAX_TEXT,) * 20,
        robots=tuple(f"{number}" + "\U0001f916" * 190 for number in range(30)),
    )
    skill = OfferedSkill(
        name="move", description="d" * 500, parameters={"type": "object"}, module="m", available=True
    )
    filled = with_skills(report, [skill] * 900)
    assert filled.skills is not None
    assert 0 < len(filled.skills) < 900
    assert filled.skills_left_out == 900 - len(filled.skills)
    size, each = len(filled.model_dump_json().encode()), len(skill.model_dump_json().encode()) + 1
    assert size <= MAX_REPORT_BYTES < size + each + 1


class _Forgetful(FakeHub):
    """A hub that can't be reached at first, and has then lost the skills once."""

    def __init__(self) -> None:
        super().__init__()
        self.requests = 0

    async def report(self, report: RobotReport) -> Reported:
        self.requests += 1
        if self.requests == 1:
            raise HubUnreachableError("nobody is there")
        self.reports.append(report)
        return Reported(version="hub", wants_skills=len(self.reports) == 1)


@pytest.mark.feature("H2")
@pytest.mark.virtual_time
async def test_skills_are_reported_when_a_hub_wants_them_and_only_then() -> None:
    hub = _Forgetful()
    troubles, notes = Troubles(logging.getLogger("hub"), "http://hub"), list[str]()
    async with scene() as made:
        link = LinkContext(hub, troubles, random.Random(1))
        reporter = HubReporter(link, made.broker, made.bridge.journal, lambda: notes)
        reporting = asyncio.create_task(reporter.run())
        await asyncio.sleep(5.0)
        assert troubles.text == "", "it is reached again"
        notes.append("not well")
        await asyncio.sleep(5.0)
        reporting.cancel()
        await asyncio.gather(reporting, return_exceptions=True)
    assert [report.skills is not None for report in hub.reports] == [True, True, False]
    assert [report.notes for report in hub.reports] == [(), (), ("not well",)]


@pytest.mark.feature("H2")
@pytest.mark.virtual_time
async def test_a_robot_of_which_nothing_changes_reports_now_and_then_and_at_once_what_does() -> None:
    """A hub takes one for hanging that says nothing for a minute."""
    hub, notes = FakeHub(), list[str]()
    link = LinkContext(hub, Troubles(logging.getLogger("hub"), "http://hub"), random.Random(1))
    async with scene() as made:
        reporting = asyncio.create_task(HubReporter(link, made.broker, made.bridge.journal, lambda: notes).run())
        await asyncio.sleep(3 * REPORT_EVERY_S + 10.0)
        assert [report.status for report in hub.reports] == ["ok"] * 4
        notes.append("not well")
        await asyncio.sleep(2.0)
        reporting.cancel()
        await asyncio.gather(reporting, return_exceptions=True)
    assert [report.status for report in hub.reports] == [*["ok"] * 4, "degraded"]
    assert [report.skills is None for report in hub.reports] == [False, *[True] * 4]


@pytest.mark.feature("H2")
@pytest.mark.virtual_time
async def test_what_operators_look_at_is_reported_at_once_and_has_room() -> None:
    hub, notes = FakeHub(), list[str]()
    link = LinkContext(hub, Troubles(logging.getLogger("hub"), "http://hub"), random.Random(1))
    async with scene(worker=False) as made:
        reporting = asyncio.create_task(HubReporter(link, made.broker, made.bridge.journal, lambda: notes).run())
        await asyncio.sleep(2.0)
        await made.add(Worker(name="worker"))
        await made.offered("follow")
        await asyncio.sleep(2.0)
        with_worker = hub.reports[-1]
        await made.broker.stops.stop_robot("", "for lunch")
        await asyncio.sleep(2.0)
        stopped = hub.reports[-1]
        notes.extend(["n" * 2 * MAX_TEXT] * 60)
        await asyncio.sleep(2.0)
        reporting.cancel()
        await asyncio.gather(reporting, return_exceptions=True)
    assert hub.reports[0].skills == []
    assert with_worker.skills is not None
    assert "follow" in {skill.name for skill in with_worker.skills}
    assert (with_worker.modules, with_worker.stopped, stopped.stopped) == (2, False, True)
    assert {len(note) for note in hub.reports[-1].notes} == {MAX_TEXT}


def test_each_trouble_is_logged_once_whichever_part_has_it(caplog: pytest.LogCaptureFixture) -> None:
    troubles = Troubles(logging.getLogger("hub"), "http://hub")
    for part, text in (
        ("events", "cut"),
        ("reports", "cut"),
        ("events", "cut"),
        ("events", "full"),
        ("events", "full"),
    ):
        troubles.begin(part, text)
    assert troubles.text == "full; cut"
    for part in ("events", "events", "reports", "reports"):
        troubles.end(part)
    assert [record.getMessage().partition("; ")[0] for record in caplog.records] == [
        "the hub http://hub: cut", "the hub http://hub: full", "the hub http://hub is back",
    ]  # fmt: skip


def test_a_trouble_does_not_have_the_token_in_it_that_a_hub_sends_back() -> None:
    know("dsr_token-of-r1")
    troubles = Troubles(logging.getLogger("hub"), "http://hub")
    troubles.begin("events", "it refuses: you sent Bearer dsr_token-of-r1")
    assert troubles.text == "it refuses: you sent Bearer [redacted]"
