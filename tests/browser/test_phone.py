"""What is in reach, and whole, on a narrow screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.script_modules import ScriptModules
from tests.browser.test_panels import CONVERSATION, IDLE

pytestmark = pytest.mark.feature("I1")

_NAMES = ("robot1/agent", "robot2/agent")
_ASKED = {"id": "a", "skill": "robot1_go_to", "module": "robot1/drive", "arguments": {}, "reason": ""}
_HEADER = """async (module, agents) => {
    const { h, render } = await import("preact");
    const place = document.createElement("div");
    document.body.prepend(place);
    document.querySelector("main").style.marginTop = "900px";
    const state = { robots: {}, agents, skills: [], modules: [], watchers: 1 };
    state.stopped = { stops: [], held: [], not_held: [] };
    const session = { monitor: { status: "live" }, state, robot: "", shows: () => true, now: () => 9e6,
        readOnly: false };
    render(h(module.Header, { session }), place);
}"""


@pytest.fixture
def phone(script_modules: ScriptModules) -> Iterator[Page]:
    page = script_modules.page
    before = page.viewport_size
    page.set_viewport_size({"width": 390, "height": 844})
    yield page
    assert before is not None
    page.set_viewport_size(before)


def _shown(modules: ScriptModules, *agents: str, **given: Any) -> dict[str, Any]:
    snapshots = {name: {**IDLE, "agent": name, **given} for name in agents}
    modules(
        "conversation/conversation.js", CONVERSATION, {"snapshots": snapshots, "talks": {name: [] for name in agents}}
    )
    return snapshots


def test_who_has_to_approve_something_out_of_sight_is_led_there(script_modules: ScriptModules, phone: Page) -> None:
    asked = {**_ASKED, "hidden_characters": 0, "created_utime": 4_000_000, "expires_utime": None}
    script_modules("header.js", _HEADER, _shown(script_modules, _NAMES[0], approvals=[asked]))
    approve = phone.get_by_role("button", name="Approve", exact=True)
    expect(approve).not_to_be_in_viewport()
    leads = phone.get_by_role("button", name="1 call waits for approval")
    leads.click()
    expect(approve).to_be_in_viewport()
    assert leads.is_visible()
    phone.set_viewport_size({"width": 1280, "height": 800})
    assert not leads.is_visible(), "where the conversation is beside it"


def test_the_field_says_to_whom_it_speaks_where_there_are_several(script_modules: ScriptModules, phone: Page) -> None:
    _shown(script_modules, *_NAMES)
    assert phone.get_by_label("Say to robot1/agent").get_attribute("placeholder") == "Say to robot1/agent \u2026"


def test_the_line_about_the_model_is_not_cut(script_modules: ScriptModules, phone: Page) -> None:
    _shown(script_modules, _NAMES[0], state="executing")
    fits = "(line) => line.scrollWidth <= line.clientWidth && line.scrollHeight <= line.clientHeight"
    assert phone.locator(".facts").evaluate(fits)
