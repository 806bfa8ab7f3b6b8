"""The page by keys alone: everything is reached and seen to be, and what is typed is written."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.rover import Rover, rover
from tests.browser.waiting import until

pytestmark = pytest.mark.feature("I1")
_MOST = 400
_BEGIN = """() => {
    for (const details of document.querySelectorAll("details")) details.open = true;
    const fields = "input:enabled, select:enabled, textarea:enabled";
    const takesKeys = `a[href], button:enabled, summary, [tabindex="0"], ${fields}`;
    const isSeen = (element) => element.checkVisibility({ visibilityProperty: true });
    window.walk = {
        named(element) {
            const name = (element.ariaLabel ?? element.innerText ?? "").slice(0, 40);
            return `${element.localName} “${name}” in ${element.closest("section, header, form")?.className}`;
        },
        unreached: new Set([...document.querySelectorAll(takesKeys)].filter(isSeen)),
        wrong: [],
    };
    return walk.unreached.size;
}"""
_LOOK = """() => {
    const element = document.activeElement;
    if (element === document.body) return null;
    walk.unreached.delete(element);
    const { outlineStyle, outlineWidth } = getComputedStyle(element);
    const hasRing = outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
    if (!hasRing) walk.wrong.push(`${walk.named(element)} has no ring`);
    const { left, right, top, bottom } = element.getBoundingClientRect();
    const shown = (low, high, most) => (Math.max(low, 0) + Math.min(high, most)) / 2;
    const at = document.elementFromPoint(shown(left, right, innerWidth), shown(top, bottom, innerHeight));
    if (!at || !(element.contains(at) || at.contains(element))) {
        walk.wrong.push(`${walk.named(element)} is behind ${at && walk.named(at)}`);
    }
    return walk.named(element);
}"""
_UNREACHED = "[...walk.unreached].filter((each) => each.isConnected && each.checkVisibility()).map(walk.named)"
_IN_FRONT = """() => {
    const element = document.activeElement;
    return element === document.body || Boolean(element.closest(".dialog, header.top"));
}"""

_BLANK = """(marks) => marks.filter((mark) => {
    const { backgroundColor, backgroundImage, borderTopWidth } = getComputedStyle(mark);
    return backgroundColor === "rgba(0, 0, 0, 0)" && backgroundImage === "none" && borderTopWidth === "0px";
}).map((mark) => mark.parentElement.innerText)"""


@pytest.fixture(scope="module")
def robot(browser: object) -> Iterator[Rover]:
    """One for all tests here."""
    with rover(approval={"rules": [{"skill": "move"}]}) as made:
        made.robot.pause_s = 0.5
        yield made


@pytest.fixture
def opened(robot: Rover, page: Page) -> Iterator[Page]:
    """The page of a run that waits for an approval, while a call is open."""
    page.goto(robot.url)
    expect(page.get_by_role("img", name=re.compile("robot is at x"))).to_be_visible()
    approval = page.get_by_role("form", name="Approval of move")
    robot.bridge.post("/calls", {"skill": "patrol", "caller": "test"})
    robot.say("move 1")
    expect(approval).to_be_visible()
    yield page
    robot.end_calls()
    expect(approval).to_have_count(0)  # a page that has seen it go refuses, for a moment, to answer the next one


def _walk(page: Page, key: str) -> None:
    """Until the focus has been everywhere."""
    for _ in range(_MOST):
        page.keyboard.press(key)
        last = page.evaluate(_LOOK)
        if last is None:
            return
    raise AssertionError(f"the focus does not come out; at last it was on {last}")


@pytest.mark.parametrize("width", [390, 1280])
def test_every_control_is_reached_and_seen_to_be_and_none_holds_the_focus(opened: Page, width: int) -> None:
    opened.set_viewport_size({"width": width, "height": 800})
    for key in ("Tab", "Shift+Tab"):
        until(opened, lambda: opened.evaluate(_BEGIN) > 50)
        _walk(opened, key)
        assert opened.evaluate(_UNREACHED) == []
        assert opened.evaluate("walk.wrong") == []


def test_what_was_opened_gives_the_focus_back_and_lets_nothing_behind_it_have_it(opened: Page) -> None:
    dialog, keys = opened.get_by_role("dialog"), opened.keyboard
    for opener in (opened.get_by_role("button", name="Help"), opened.locator(".floor")):
        opener.focus()
        keys.press("Enter")
        expect(dialog.locator(":focus")).to_be_visible()
        for _ in range(12):
            keys.press("Tab")
            assert opened.evaluate(_IN_FRONT)
        keys.press("Escape")
        expect(dialog).to_be_hidden()
        expect(opener).to_be_focused()
    for opener in (opened.get_by_role("button", name="More for agent"), opened.get_by_text("Series: automatic")):
        lying_over = opener.locator("xpath=following-sibling::*")
        opener.focus()
        for leaves in ("Escape", "Shift+Tab"):
            keys.press("Enter")
            expect(lying_over).to_be_visible()
            keys.press("Tab" if leaves == "Escape" else leaves)
            keys.press(leaves)
            expect(lying_over).to_be_hidden()
            if leaves == "Escape":
                expect(opener).to_be_focused()
    menu = opened.get_by_role("button", name="More for agent")
    menu.press("Enter")
    keys.press("Tab")
    keys.press("Enter")
    expect(opened.get_by_role("button", name="Step", exact=True)).to_be_attached()
    expect(menu).to_be_focused()
    opened.get_by_role("button", name="Resume").press("Enter")


@pytest.mark.parametrize("width", [390, 1280])
def test_the_help_opens_where_it_begins_and_each_of_its_signs_is_drawn(opened: Page, width: int) -> None:
    opened.set_viewport_size({"width": width, "height": 600})
    opened.locator("body").press("?")
    dialog = opened.get_by_role("dialog")
    expect(dialog.locator(":focus")).to_be_in_viewport()
    assert dialog.evaluate("(dialog) => dialog.scrollHeight > dialog.clientHeight")
    assert dialog.evaluate("(dialog) => dialog.scrollTop") == 0
    assert dialog.locator(".mark").evaluate_all(_BLANK) == []


def test_who_pauses_by_the_button_stays_on_it(opened: Page) -> None:
    controls = opened.get_by_role("group", name="Control agent")
    resume, pause = (controls.get_by_role("button", name=name, exact=True) for name in ("Resume", "Pause"))
    pause.press("Enter")
    expect(resume).to_be_focused()
    opened.keyboard.press(" ")
    expect(pause).to_be_focused()
    pause.click()
    expect(resume).to_be_focused()
    resume.click()
    expect(pause).to_be_focused()


def test_what_goes_or_is_disabled_leaves_the_focus_where_it_was_and_has_it_again(robot: Rover, opened: Page) -> None:
    keys, controls = opened.keyboard, opened.get_by_role("group", name="Control agent")
    approval, talk = opened.get_by_role("form", name="Approval of move"), opened.locator("ol.talk")
    step = controls.get_by_role("button", name="Step", exact=True)

    approval.get_by_role("button", name="Reject").press("Enter")
    expect(approval).to_be_hidden()
    expect(talk).to_be_focused()

    opened.get_by_role("button", name="More for agent").press("Enter")
    opened.get_by_role("button", name="Step mode").press("Enter")
    expect(opened.locator(".states")).to_contain_text("step by step")
    robot.say("patrol")
    expect(step).to_be_enabled()
    step.press("Enter")
    expect(step).to_be_disabled()
    expect(controls).to_be_focused()
    keys.press("Enter")
    robot.say("patrol")
    expect(step).to_be_focused()
    keys.press("Tab")
    expect(controls.get_by_role("button", name="Resume")).to_be_focused()
    keys.press("Enter")
    expect(controls.get_by_role("button", name="Pause")).to_be_visible()

    robot.say("move 1")
    reason = approval.get_by_label("Reason")
    reason.fill("because it")
    robot.bridge.post("/calls/cancel", {"reason": "for a test"})
    expect(approval).to_be_hidden()
    expect(talk).to_be_focused()
    keys.type(" is / ?")
    expect(talk).to_be_focused()
    expect(controls.get_by_role("button", name="Pause")).to_be_visible()
    keys.press("Escape")
    expect(talk).not_to_be_focused()

    abort = controls.get_by_role("button", name="Abort")
    expect(abort).to_be_disabled()
    robot.say("patrol")
    expect(abort).to_be_enabled()
    abort.press("Enter")
    expect(abort).to_be_disabled()
    expect(controls).to_be_focused()
    keys.press("Tab")
    expect(controls.locator(":focus")).to_be_visible()


def test_keys_are_orders_only_where_nothing_else_is_meant(opened: Page) -> None:
    controls = opened.get_by_role("group", name="Control agent")
    resume, pause = (controls.get_by_role("button", name=name, exact=True) for name in ("Resume", "Pause"))
    dialog, keys = opened.get_by_role("dialog"), opened.keyboard
    approval = opened.get_by_role("form", name="Approval of move")
    approval.get_by_text("Other arguments").click()
    say = opened.get_by_role("textbox", name="Say to agent")
    for field in (say, approval.get_by_label("Reason"), approval.get_by_label("Arguments as JSON")):
        field.fill("")
        keys.type("/ ?")
        expect(field).to_have_value("/ ?")
        keys.press("Escape")
        expect(field).not_to_be_focused()
    expect(dialog).to_be_hidden()
    expect(pause).to_be_visible()

    elsewhere = [".floor", ".stage", "ol.talk", ".modules .rows", ".plots .body"]
    for place in (*elsewhere, "[aria-label='Zoom in']"):
        opened.locator(place).focus()
        keys.press("?")
        expect(dialog).to_be_visible()
        keys.press("?")
        expect(dialog).to_be_hidden()
        expect(opened.locator(place)).to_be_focused()
        keys.press("/")
        expect(say).to_be_focused()
        keys.press("Escape")
    for place in elsewhere:
        opened.locator(place).focus()
        keys.press(" ")
        expect(resume).to_be_visible()
        keys.press(" ")
        expect(pause).to_be_visible()

    table = opened.get_by_role("button", name="Table")
    table.press(" ")
    expect(table).to_have_attribute("aria-pressed", "true")
    opened.get_by_text("Series: automatic").press(" ")
    box = opened.get_by_role("checkbox", name="/scan")
    before = box.is_checked()
    box.press(" ")
    expect(box).to_be_checked(checked=not before)
    table.press("?")
    expect(dialog.locator(":focus")).to_be_visible()
    keys.press(" ")
    expect(dialog).to_be_hidden()
    expect(pause).to_be_visible()
