"""A live mission is watched and directed in a browser, on a real run."""

from __future__ import annotations

import logging
import math
import re
import time

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Contexts
from tests.browser.live_run import LiveRun
from tests.browser.pixels import CAMERA, FOLLOWED, FREE, MAP, ROBOT, SHIRT, WALL, blot
from tests.browser.waiting import reads, until

pytestmark = [pytest.mark.feature("I1"), pytest.mark.timeout(120)]
_SHIFTS = """() => {
    window.shifts = [];
    new PerformanceObserver((list) => {
        const talk = document.querySelector("ol.talk");
        for (const { hadRecentInput, value, sources } of list.getEntries()) {
            const moved = sources.map(({ node }) => node).filter((node) => node && !talk.contains(node));
            const what = moved.map((node) => node.outerHTML?.slice(0, 80) ?? node.textContent);
            if (!hadRecentInput && moved.length > 0) window.shifts.push([value, what.join(" ")]);
        }
    }).observe({ type: "layout-shift" });
}"""
"""Except in the conversation, where what is new moves up what was said before."""
_LOST = """[document.querySelector("header [role=status]").innerText.includes("Connection lost"),
    [...document.querySelectorAll("button")].find(({ innerText }) => innerText === "Pause")?.disabled,
    document.querySelector("button.stop").disabled]"""
"""Whether it is said, and whether Pause and Stop can't be pressed at that moment."""
_MAY_SHIFT = 0.001
"""Of the window's size, while pictures, scans, numbers and texts stream."""
_MAY_SHIFT_ONCE = 0.02
"""When a mission ends, whose line goes."""
_UNSEEN_MS = 700
"""An approval that comes so soon after another one is not decided by a press that may have been meant for that."""
_log = logging.getLogger(__name__)


def say(page: Page, text: str) -> None:
    """By keyboard alone."""
    page.locator("body").press("/")
    page.keyboard.type(text)
    page.keyboard.press("Enter")


def _shifted(page: Page) -> float:
    return sum(float(value) for value, _ in page.evaluate("window.shifts"))


def _largest_shifts(page: Page) -> list[tuple[float, str]]:
    return sorted(((float(value), str(what)) for value, what in page.evaluate("window.shifts")), reverse=True)[:5]


def _is_framed(page: Page) -> bool:
    """Whether the frame of who is followed has a side on either side of the shirt, and near it."""
    shirt = blot(page, CAMERA, SHIRT)
    if shirt is None:
        return False
    frame = blot(page, CAMERA, FOLLOWED, (round(shirt.y) - 2, round(shirt.y) + 2))
    return frame is not None and frame.left < shirt.left + 12 and shirt.right - 12 < frame.right


def test_a_mission_is_seen_from_the_first_moments_to_its_end(run: LiveRun, page: Page) -> None:
    run.follow()
    began = time.monotonic()
    page.goto(run.url)
    until(page, lambda: blot(page, MAP, ROBOT) and blot(page, CAMERA, FOLLOWED))
    _log.info("camera, box, map and robot are seen after %.2f s", time.monotonic() - began)

    box, shirt = blot(page, CAMERA, FOLLOWED), blot(page, CAMERA, SHIRT)
    assert box is not None
    assert shirt is not None
    assert box.top < shirt.y < box.bottom
    # The label has the frame's colour and may be wider; level with the shirt there is the frame alone.
    until(page, lambda: _is_framed(page))
    assert blot(page, MAP, FOLLOWED), "who is followed is on the map, too"
    until(page, lambda: blot(page, MAP, WALL) and (blot(page, MAP, FREE) or box).count > 3000)
    robot, place = blot(page, MAP, ROBOT), run.robot.place
    assert robot is not None
    until(page, lambda: math.dist(place, run.robot.place) > 0.7)
    page.evaluate(_SHIFTS)
    until(page, lambda: math.dist(place, run.robot.place) > 2.5)
    until(page, lambda: (now := blot(page, MAP, ROBOT)) and math.dist((now.x, now.y), (robot.x, robot.y)) > 8)
    expect(page.get_by_role("img", name=re.compile("Following: person in a red shirt"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile(r"robot is at x -?\d"))).to_be_visible()

    assert _shifted(page) < _MAY_SHIFT, _largest_shifts(page)

    say(page, "stop following")
    expect(page.locator(".panel.calls")).to_contain_text("No call is open")
    until(page, lambda: blot(page, CAMERA, FOLLOWED) is None)
    assert _shifted(page) < _MAY_SHIFT_ONCE, _largest_shifts(page)


def test_every_order_acts(run: LiveRun, page: Page) -> None:
    run.follow()
    page.goto(run.url)
    conversation = page.locator(".panel.conversation")
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_enabled()

    page.locator("body").press("Space")
    until(page, lambda: page.locator(".held").all_inner_texts() == ["held: the robot stands still"])
    until(page, lambda: run.robot.stands)
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".held")).to_be_hidden()
    until(page, lambda: not run.robot.stands)

    gone = len(run.calls("go_to"))
    say(page, "stop following, go to 1.5 0.5")
    approval = page.get_by_role("form", name="Approval of go_to")
    until(page, approval.is_visible)
    approval.get_by_role("button", name="Approve", exact=True).click()
    until(page, approval.is_hidden)
    decided = page.evaluate("performance.now()")
    until(page, lambda: len(run.calls("go_to")) == gone + 1)
    until(page, lambda: not run.robot.stands)

    orders = conversation.locator(".said.operator").filter(has_text="go to (")
    before = orders.count()
    page.locator(MAP).click(position={"x": 100, "y": 100})
    dialog = page.get_by_role("dialog", name="Go here?")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_be_hidden()
    until(page, lambda: page.evaluate("performance.now()") > decided + _UNSEEN_MS)
    page.locator(MAP).click(position={"x": 150, "y": 150})
    dialog.get_by_role("button", name="Go here").click()
    until(page, approval.is_visible)
    approval.get_by_role("textbox", name="Reason").fill("not into the corner")
    approval.get_by_role("button", name="Reject").click()
    until(page, approval.is_hidden)
    until(page, reads(conversation, "not into the corner"))
    assert orders.count() == before + 1, "who cancels sends the robot nowhere"
    assert len(run.calls("go_to")) == gone + 1

    run.follow()
    page.get_by_role("button", name="Stop every robot").click()
    stopped = page.get_by_role("alert", name="Stopped")
    until(page, reads(stopped, "held: the robot stands still"))
    until(page, lambda: run.robot.stands)
    stopped.get_by_role("button", name="Release").click()
    expect(stopped).to_be_hidden()


def test_calls_are_let_go_one_by_one_taken_back_ended_and_forgotten(run: LiveRun, page: Page) -> None:
    page.goto(run.url)
    conversation, controls = page.locator(".panel.conversation"), page.get_by_role("group", name="Control agent")
    began = run.robot.heading

    def more(name: str) -> None:
        controls.get_by_role("button", name="More for agent").click()
        controls.get_by_role("button", name=name, exact=True).click()

    def turned() -> float:
        return math.remainder(run.robot.heading - began, 360)

    def let_one_go() -> str:
        """The outcome of a turn that is let go; on a machine that stands still at times it may fail."""
        nonlocal began
        until(page, lambda: run.robot.stands)
        began, turns = run.robot.heading, len(run.calls("turn"))
        say(page, "turn left 60")
        waiting = page.get_by_role("region", name="Waiting for a step")
        until(page, reads(waiting, "turn(angle_deg=60"))
        assert len(run.calls("turn")) == turns, "it waits"
        waiting.get_by_role("button", name="Step").click()
        until(page, waiting.is_hidden)
        until(page, lambda: len(run.calls("turn")) > turns and run.calls("turn")[-1]["outcome"])
        return str(run.calls("turn")[-1]["outcome"])

    more("Step mode")
    while let_one_go() != "completed":
        pass
    assert turned() > 55
    turn = conversation.get_by_role("article", name="Call of turn").last
    until(page, lambda: turn.count() and reads(turn, "completed")())
    controls.get_by_role("button", name="Resume").click()

    more("Undo")
    until(page, lambda: abs(turned()) < 5)
    until(page, reads(conversation, "Went back"))

    say(page, "turn left 1000")
    until(page, lambda: turned() > 10)
    controls.get_by_role("button", name="Abort", exact=True).click()
    until(page, lambda: "cancelled" in [turn["outcome"] for turn in run.calls("turn")])
    until(page, lambda: run.robot.stands)
    until(page, reads(conversation, "aborted"))

    more("Forget")
    until(page, reads(conversation, "The operator has begun a new conversation"))


def test_a_bridge_that_was_killed_is_found_again(run: LiveRun, contexts: Contexts) -> None:
    context, complaints = contexts.new()
    complaints.expect("WebSocket connection to")
    complaints.expect("ERR_CONNECTION_REFUSED")
    page = context.new_page()
    run.follow()
    page.goto(run.url)
    status = page.get_by_role("banner").get_by_role("status")
    expect(status).to_have_text("Live")
    until(page, lambda: blot(page, CAMERA, FOLLOWED))
    run.kill_bridge()
    until(page, lambda: page.evaluate(_LOST) == [True, True, False])
    expect(status).to_have_text("Live")
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_enabled()
    if "follow_person" not in run.open_skills():
        run.follow()  # calls end when nobody acknowledges them for 2 s, and a machine with much to do takes that long
    place = run.robot.place
    until(page, lambda: math.dist(place, run.robot.place) > 0.3)
    before = blot(page, CAMERA, SHIRT)
    until(page, lambda: blot(page, CAMERA, SHIRT) != before)


def test_a_slow_tab_delays_no_other(run: LiveRun, contexts: Contexts) -> None:
    run.follow()
    slow, quick = (contexts.new()[0].new_page() for _ in range(2))
    for page in (slow, quick):
        page.goto(run.url)
    expect(quick.get_by_text("2 watching")).to_be_visible()
    until(quick, lambda: blot(slow, CAMERA, FOLLOWED) and blot(quick, CAMERA, FOLLOWED))
    halted: list[object] = []
    debugger = slow.context.new_cdp_session(slow)
    debugger.on("Debugger.paused", lambda event: halted.append(event))
    debugger.send("Debugger.enable")
    debugger.send("Debugger.pause")
    until(quick, lambda: halted)
    seen = set()

    def go_on() -> bool:
        seen.add(blot(quick, CAMERA, SHIRT))
        return len(seen) > 12

    until(quick, go_on)
    quick.get_by_role("button", name="Pause", exact=True).click()
    expect(quick.locator(".held")).to_have_text("held: the robot stands still")
    debugger.send("Debugger.resume")
    expect(slow.locator(".held")).to_have_text("held: the robot stands still")
    quick.get_by_role("button", name="Resume").click()
