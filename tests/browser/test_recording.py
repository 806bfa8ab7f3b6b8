"""A recording, on the page that a run is looked at with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dimos_streams.tool_stream.event import EventType
from dimos_streams.tool_stream.protocol.channels import EVENTS
from dimos_streams.tool_stream.wire.packing import pack_event
from tests.bridge.scene import event
from tests.browser.accessibility import violations
from tests.browser.conftest import Contexts
from tests.recording.logs import START, write_log
from tests.viewer.mission import record
from tests.viewer.open_recordings import served_in_a_thread

pytestmark = pytest.mark.slow
_WHOLE: tuple[tuple[int, EventType], ...] = ((1, "open"), (2, "close"))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where one is served."""
    log = tmp_path_factory.mktemp("logs") / "mission.lcmlog"
    with ThreadPoolExecutor(1) as elsewhere:  # Playwright's loop runs in this thread
        elsewhere.submit(record, log).result()
    with served_in_a_thread(log) as url:
        yield url


def _opened(contexts: Contexts, url: str, **options: object) -> Page:
    page = contexts.new(**options)[0].new_page()
    page.goto(url)
    expect(page.get_by_role("slider", name="Moment")).to_be_visible()
    return page


def _go_to(page: Page, moment: str) -> None:
    field = page.get_by_role("textbox", name="Go to")
    field.fill(moment)
    field.press("Enter")
    page.keyboard.press("Escape")


@pytest.mark.feature("I3")
def test_a_recording_is_gone_through(contexts: Contexts, recording: str) -> None:
    page = _opened(contexts, recording)
    bar = page.get_by_role("group", name="Recording")
    bar.get_by_role("button", name="Pause").click()  # it plays as soon as it is looked at
    expect(page.get_by_role("button", name="Stop every robot")).to_have_count(0)
    expect(page.get_by_role("textbox", name="Say")).to_have_count(0)
    _go_to(page, "0:02.8")
    conversation = page.locator(".conversation")
    expect(conversation).to_contain_text("paused")
    expect(conversation).to_contain_text("follow the person in the red shirt")
    expect(page.locator(".camera canvas").first).to_be_visible()
    _go_to(page, "0:01.5")
    expect(conversation).not_to_contain_text("paused")
    before = bar.get_by_role("textbox").input_value()
    page.keyboard.press(".")
    expect(bar.locator(".said")).to_contain_text("pause")
    page.keyboard.press(",")
    expect(bar.get_by_role("textbox")).not_to_have_value(before)
    bar.get_by_label("Speed").select_option("16")
    page.keyboard.press("Space")
    expect(bar.locator(".said")).to_contain_text("turn")
    expect(bar.get_by_role("button", name="Play")).to_be_visible()
    moment = page.get_by_role("slider", name="Moment").get_attribute("aria-valuetext") or ""
    assert moment.partition(" of ")[0] == moment.partition(" of ")[2]


def test_it_can_be_used_by_everybody_and_on_a_phone(contexts: Contexts, recording: str) -> None:
    for scheme, width in (("light", 1280), ("dark", 390)):
        page = _opened(contexts, recording, color_scheme=scheme, viewport={"width": width, "height": 800})
        _go_to(page, "0:02")
        expect(page.locator(".conversation")).to_contain_text("red shirt")
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.close()


def test_what_a_recording_has_not_is_said(contexts: Contexts, tmp_path: Path) -> None:

    foreign = write_log(
        tmp_path / "a.lcmlog", [(START + second, "EXAMPLE", b"12345678") for second in (0, 5_000_000)]
    )
    with served_in_a_thread(foreign) as url:
        page = _opened(contexts, url)
        page.get_by_text("4 notes").click()
        expect(page.get_by_text("another program wrote it")).to_be_visible()
        expect(page.get_by_text("Not in the recording: pictures")).to_be_visible()
        page.close()


def test_who_does_not_see_the_timeline_is_told_the_calls_of_any_moment(contexts: Contexts, tmp_path: Path) -> None:
    numbered = [(number, event(seq, kind, call_id=f"c{number}")) for number in range(3) for seq, kind in _WHOLE]
    events = [
        (utime, EVENTS, pack_event(replace(each, utime=utime)))
        for number, each in numbered
        for utime in [START + 4_000_000 * number + each.seq]
    ]
    with served_in_a_thread(write_log(tmp_path / "a.lcmlog", events)) as url:
        page = _opened(contexts, url)
        page.get_by_role("button", name="Pause").click()
        for moment in ("0:08", "0:05"):
            _go_to(page, moment)
            expect(page.get_by_role("img", name=re.compile("^Timeline, [1-9]"))).to_be_visible()
        page.close()
