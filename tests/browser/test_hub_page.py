"""What robots say is shown on the hub's page as on their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dimos_streams.fleet.batches import encoded_event
from tests.hub.serving import Robot, added, event, served_hub
from tests.hub.test_commands import answering

pytestmark = [pytest.mark.feature("H2"), pytest.mark.slow]


def test_what_reorders_or_hides_is_written_out_on_the_hubs_page_too(page: Page, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub:
        robot.ship(hub, encoded_event(1, event(1, "<b>stop</b> \u202etfel\u202c \u2066go\u2069\u200b\x07", "open")))
        page.goto(hub.url)
        calls = page.locator("#calls li")
        expect(calls).to_have_text(r"r1 s open: <b>stop</b> \u202etfel\u202c \u2066go\u2069\u200b\x07")


def test_a_release_on_the_hubs_page_names_the_stops_that_there_are(page: Page, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub:
        robot.report(hub, stopped=True)
        with answering(hub, robot) as (answers,):
            answers.replies["/robots"] = (200, {"robots": [""], "stopped": {"stops": [{"robot": "", "utime": 7}]}})
            page.goto(hub.url)
            page.get_by_role("button", name="Release").click()
            expect(page.locator("#notice")).to_have_text("r1: r1 has done it")
            assert answers.taken[-1]["path"] == "/robots/release"
            assert answers.taken[-1]["body"] == {"robot": "", "reason": "", "seen": [7]}
    answers.join()
