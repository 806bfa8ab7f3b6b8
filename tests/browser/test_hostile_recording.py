"""A recording that means ill, on the page and in a report: both stay of use, run nothing and load nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from dimos_streams.cli.entry import run_command
from tests.browser.conftest import Contexts
from tests.browser.hostile_log import hostile_log
from tests.browser.waiting import until
from tests.viewer.open_recordings import served_in_a_thread

pytestmark = [pytest.mark.feature("I3"), pytest.mark.slow]
_UNSEEN = r"[\u0000-\u0008\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]"


@pytest.mark.parametrize("at_one_instant", [False, True])
def test_a_hostile_recording_can_be_gone_through(contexts: Contexts, tmp_path: Path, at_one_instant: bool) -> None:
    log = hostile_log(tmp_path / "evil.lcmlog", calls=300, at_one_instant=at_one_instant)
    with served_in_a_thread(log) as url:
        page = contexts.new()[0].new_page()
        page.goto(url)
        slider = page.get_by_role("slider", name="Moment")
        expect(slider).to_be_visible()
        slider.press("End")
        said = page.get_by_role("group", name="Recording").locator(".said")
        expect(said).to_contain_text("onerror=alert(1)")
        slider.press("Home")
        page.keyboard.press("Escape")
        page.keyboard.press(".")
        page.get_by_role("button", name="Table").click()
        until(page, lambda: "onerror" in page.evaluate("document.body.innerText"))
        assert page.evaluate(f"!/{_UNSEEN}/u.test(document.body.innerText)")
        assert page.locator("img[src=x], section[role=alert]").count() == 0
        page.close()


def test_a_report_of_a_hostile_recording_runs_and_loads_nothing(contexts: Contexts, tmp_path: Path) -> None:
    log = hostile_log(tmp_path / "evil.lcmlog", calls=300)
    to = tmp_path / "evil.html"
    assert run_command(["recording", "report", str(log), "-o", str(to)]) == 0
    context, complaints = contexts.new()
    complaints.expect(re.escape(to.as_uri()))
    page = context.new_page()
    page.goto(to.as_uri())
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert page.evaluate("document.querySelectorAll('script, img[src=x], iframe, link').length") == 0
    assert page.evaluate(f"!/{_UNSEEN}/u.test(document.body.innerText)")
