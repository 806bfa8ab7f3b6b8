"""What robots say is shown on the hub's page as on their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dimos_streams.fleet.batches import encoded_event
from tests.bridge.serving import Served
from tests.browser.conftest import Contexts
from tests.hub.answering_robot import answering
from tests.hub.serving import Robot, added, event, served_hub

pytestmark = [pytest.mark.feature("H2"), pytest.mark.slow]


def leave(page: Page) -> None:
    """Let the page ask its hub for nothing more: the hub ends before the browser's tab."""
    page.goto("about:blank")


def test_a_page_without_its_script_says_so_and_has_no_stop_that_does_nothing(
    contexts: Contexts, bridge: Served, tmp_path: Path
) -> None:
    with served_hub(f"sqlite:///{tmp_path}/hub.sqlite") as hub:
        page = contexts.new(java_script_enabled=False)[0].new_page()
        page.goto(hub.url)
        expect(page.get_by_role("button", name="Stop every robot")).to_be_disabled()
        expect(page.locator(".unloaded")).to_contain_text("script was not loaded")
        page.goto(bridge.url)
        expect(page.locator(".unloaded")).to_contain_text("script was not loaded")
        expect(page.get_by_role("button")).to_have_count(0)
        page = contexts.new()[0].new_page()
        page.goto(hub.url)
        expect(page.get_by_role("button", name="Stop every robot")).to_be_enabled()
        expect(page.locator(".unloaded")).to_have_count(0)
        leave(page)


def test_what_reorders_or_hides_is_written_out_on_the_hubs_page_too(page: Page, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub:
        robot.ship(hub, encoded_event(1, event(1, "<b>stop</b> \u202etfel\u202c \u2066go\u2069\u200b\x07", "open")))
        page.goto(hub.url)
        calls = page.locator("#calls li")
        expect(calls).to_have_text(r"r1 s open: <b>stop</b> \u202etfel\u202c \u2066go\u2069\u200b\x07")
        leave(page)


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
            leave(page)
    answers.join()


def test_on_a_phone_each_robot_is_a_card_with_a_red_stop_in_reach(contexts: Contexts, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robots = [Robot(name, token) for name, token in added(database, "kitchen-robot-1", "r2").items()]
    with served_hub(database) as hub:
        for robot in robots:
            robot.report(hub)
        with answering(hub, *robots) as answering_robots:
            page = contexts.new(viewport={"width": 390, "height": 844})[0].new_page()
            page.goto(hub.url)
            stops = page.get_by_role("button", name="Stop", exact=True)
            expect(stops).to_have_count(2)
            expect(page.get_by_text("connected", exact=True)).to_have_count(2)
            assert page.evaluate(_OVERFLOWS) == []
            every = page.get_by_role("button", name="Stop every robot")
            fills = [
                each.evaluate("(each) => getComputedStyle(each).backgroundColor") for each in (*stops.all(), every)
            ]
            assert len(set(fills)) == 1, fills
            leave(page)
    for each in answering_robots:
        each.join()


@pytest.mark.parametrize("width", [390, 1280])
def test_who_presses_stop_twice_on_the_hubs_page_stops_twice(contexts: Contexts, tmp_path: Path, width: int) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub:
        robot.report(hub)
        with answering(hub, robot) as (answers,):
            answers.replies["/robots/stop"] = (200, {"robot": "", "calls": {}, "confirmed": True, "text": "stands"})
            page = contexts.new(viewport={"width": width, "height": 844})[0].new_page()
            page.goto(hub.url)
            place = page.get_by_role("button", name="Stop", exact=True).bounding_box()
            assert place is not None
            for _ in range(2):
                page.mouse.click(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
                expect(page.locator("#notice")).to_have_text("r1: stands")
                page.get_by_role("button", name="Release").wait_for()
                page.locator("#notice").evaluate("(notice) => { notice.textContent = ''; }")
            assert [each["path"] for each in answers.taken] == ["/robots/stop"] * 2
            leave(page)
    answers.join()


_OVERFLOWS = """() => {
    const words = [...document.querySelectorAll("td")].filter((each) => /^[\\w-]+$/.test(each.textContent));
    const lines = (each) => {
        const range = document.createRange();
        range.selectNodeContents(each);
        return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
    };
    const broken = words.filter((each) => each.children.length === 0 && lines(each) > 1);
    const right = (each) => each.getBoundingClientRect().right;
    const outside = [...document.querySelectorAll("button, td")].filter((each) => right(each) > innerWidth);
    return [...broken, ...outside].map((each) => each.textContent);
}"""
"""The texts of words that are broken, and of what is partly outside the window."""


def test_the_hubs_page_shows_what_it_knows_before_a_robot_has_reported_it(page: Page, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub:
        robot.report(hub)
        opened = [event(number, "on", "open", call_id=f"c{number}") for number in (1, 2)]
        robot.ship(hub, *(encoded_event(number, each) for number, each in enumerate(opened, 1)))
        with answering(hub, robot) as (answers,):
            answers.replies["/robots/stop"] = (200, {"robot": "", "calls": {}, "confirmed": True, "text": "stands"})
            page.goto(hub.url)
            cells = page.locator("#robots tbody td")
            expect(cells.nth(3)).to_have_text("2")
            page.get_by_role("button", name="Stop", exact=True).click()
            expect(page.locator("#notice")).to_have_text("r1: stands")
            expect(cells.nth(2)).to_have_text("stopped")
            page.get_by_role("button", name="Release").wait_for()
            leave(page)
    answers.join()
