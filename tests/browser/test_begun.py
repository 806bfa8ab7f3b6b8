"""What somebody writes in a conversation, while they look elsewhere."""

from __future__ import annotations

import pytest

from tests.browser.script_modules import ScriptModules

_BEGUN = """async ({ Say }, { answered }) => {
    const { h, render } = await import("preact");
    const { Approval } = await import(new URL("dashboard/conversation/approval.js", location.href));
    const place = document.body.appendChild(document.createElement("main"));
    let answer;
    const session = { connected: true, readOnly: false, now: () => 2e6,
        ask: () => new Promise((resolve) => (answer = resolve)) };
    const approval = { id: "a", skill: "go_to", arguments: { x: 1 }, revision: 1, created_utime: 1,
        expires_utime: null };
    const show = (name) => render(h("div", { key: name }, h(Say, { name, agent: {}, session }),
        name === "r1/agent" && h(Approval, { name, approval, session })), place);
    const settled = () => new Promise((resolve) => setTimeout(resolve, 50));
    const texts = () => [...place.querySelectorAll("input, textarea")].map(({ value }) => value);
    show("r1/agent");
    const [say, reason, json] = place.querySelectorAll("input, textarea");
    [say.value, reason.value, json.value] = ["move 1", "too far", '{"x": 5}'];
    json.dispatchEvent(new Event("input", { bubbles: true }));
    await settled();
    if (answered) place.querySelector("form.say").requestSubmit();
    show("r2/agent");
    const meanwhile = texts();
    if (answered) answer({ type: "reply" });
    await settled();
    show("r1/agent");
    return [meanwhile, texts(), place.querySelector("details").open];
}"""


@pytest.mark.parametrize(("answered", "say"), [(False, "move 1"), (True, "")])
def test_what_was_begun_to_be_written_is_there_after_a_look_at_another_agent(
    script_modules: ScriptModules, answered: bool, say: str
) -> None:
    found = script_modules("conversation/say.js", _BEGUN, {"answered": answered})
    assert found == [[""], [say, "too far", '{"x": 5}'], True]
