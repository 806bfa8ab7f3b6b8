"""How the page looks and reads: light and dark, narrow and wide, to eyes and to screen readers."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.browser.accessibility import violations
from tests.browser.conftest import Contexts
from tests.browser.live_run import LiveRun

_SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def test_axe_is_what_its_page_says() -> None:
    folder = Path(__file__).with_name("axe")
    digest = hashlib.sha256((folder / "axe.min.js").read_bytes()).hexdigest()
    assert digest in (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.feature("I1")
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("width", "colours"), [(390, "light"), (1280, "dark"), (1920, "light")])
def test_everybody_can_use_it(run: LiveRun, contexts: Contexts, width: int, colours: str) -> None:
    run.follow()
    run.say("go to 2 1")
    page = contexts.new(viewport={"width": width, "height": 844}, color_scheme=colours)[0].new_page()
    page.goto(run.url)
    page.get_by_role("button", name="Approve", exact=True).wait_for()
    assert page.evaluate(_SIDEWAYS) == 0
    assert violations(page) == []
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    assert violations(page) == []
