"""How the page looks and reads: light and dark, narrow and wide, to eyes and to screen readers."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.browser.accessibility import violations
from tests.browser.conftest import Contexts
from tests.browser.live_run import LiveRun

_PEOPLE = (
    (390, "light", "no-preference"),
    (1280, "dark", "reduce"),
    (1920, "light", "no-preference"),
)
_SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def test_axe_is_what_its_page_says() -> None:
    folder = Path(__file__).with_name("axe")
    digest = hashlib.sha256((folder / "axe.min.js").read_bytes()).hexdigest()
    assert digest in (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.feature("I1")
@pytest.mark.timeout(120)
def test_everybody_can_use_it(run: LiveRun, contexts: Contexts) -> None:
    run.follow()
    run.say("go to 2 1")
    for width, colours, motion in _PEOPLE:
        context, _ = contexts.new(
            viewport={"width": width, "height": 844}, color_scheme=colours, reduced_motion=motion
        )
        page = context.new_page()
        page.goto(run.url)
        page.get_by_role("button", name="Approve", exact=True).wait_for()
        assert page.evaluate(_SIDEWAYS) == 0
        assert violations(page) == []
        moves = page.locator(".card.open").count() > 0 and page.evaluate("document.getAnimations().length") > 0
        assert moves == (motion == "no-preference"), "what lives pulses, but for those whom that troubles"
        page.keyboard.press("?")
        page.get_by_role("dialog").wait_for()
        assert violations(page) == []
        context.close()
