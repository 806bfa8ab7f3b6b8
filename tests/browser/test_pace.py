"""Canvases are drawn together: each frame costs the browser about the same, however little of it has changed."""

from __future__ import annotations

import pytest

from tests.browser.script_modules import ScriptModules

pytestmark = pytest.mark.feature("I1")

_DRAWN = """async (pace) => {
    const frames = [];
    let frame = 0;
    const count = () => (frame += 1, requestAnimationFrame(count));
    requestAnimationFrame(count);
    const ends = new Promise((resolve) => setTimeout(resolve, 1000));
    const map = () => frames.push(["map", frame]);
    const picture = () => frames.push(["picture", frame]);
    // Every 100 ms what a robot measures: the picture comes a little later than all else, and is drawn at once.
    const measure = () => {
        pace.drawSoon(map);
        setTimeout(() => pace.drawNext(picture), 10);
    };
    const timer = setInterval(measure, 100);
    await ends;
    clearInterval(timer);
    return frames;
}"""
_ALONE = """async (pace) => {
    let drawn = 0;
    const began = performance.now();
    const again = () => (drawn += 1, pace.drawSoon(again));
    again();
    while (performance.now() - began < 600) await new Promise((resolve) => setTimeout(resolve, 20));
    pace.drawNot(again);
    const until = drawn;
    await new Promise((resolve) => setTimeout(resolve, 200));
    return [until, drawn - until];
}"""
_FAILS = """(pace) => new Promise((resolve) => {
    const failures = [];
    window.addEventListener("error", (event) => (failures.push(event.message), event.preventDefault()));
    pace.drawNext(() => { throw new Error("no canvas"); });
    pace.drawNext(() => setTimeout(() => resolve(failures)));
})"""

_SHOWN = """async ({ Session }) => {
    const { drawSoon } = await import(new URL("dashboard/pace.js", location.href));
    const session = new Session({ readOnly: false });
    let frame = 0;
    const count = () => (frame += 1, requestAnimationFrame(count));
    requestAnimationFrame(count);
    const shown = await new Promise((resolve) => {
        const heard = [];
        const hears = (what) => heard.push([what, frame]) > 1 && resolve(heard);
        session.listen(() => hears("session"));
        drawSoon(() => hears("canvas"));
        session.changed();
        session.changed();
    });
    return [shown.map(([what]) => what).sort(), shown[0][1] === shown[1][1]];
}"""
_HIDDEN = """({ Session }) => {
    const plain = setTimeout;
    window.setTimeout = (call) => plain(call);
    window.requestAnimationFrame = () => 1;
    Object.defineProperty(document, "hidden", { value: true });
    const session = new Session({ readOnly: false });
    return new Promise((resolve) => {
        session.listen(() => resolve("heard"));
        session.changed();
    });
}"""


def test_what_can_wait_is_drawn_with_what_cannot(script_modules: ScriptModules) -> None:
    drawn = script_modules("pace.js", _DRAWN)
    pictures, maps = ({frame for what, frame in drawn if what == name} for name in ("picture", "map"))
    assert len(maps) > 3
    assert maps <= pictures


def test_what_is_drawn_by_itself_is_so_a_few_times_a_second(script_modules: ScriptModules) -> None:
    drawn, after = script_modules("pace.js", _ALONE)
    assert 2 <= drawn <= 8, "the first, and one each 110 ms"
    assert after == 0


def test_what_is_reported_is_shown_in_the_frame_that_canvases_are_drawn_in(script_modules: ScriptModules) -> None:
    assert script_modules("session.js", _SHOWN) == [["canvas", "session"], True]


def test_what_is_reported_is_heard_in_a_tab_that_draws_nothing(script_modules: ScriptModules) -> None:
    assert script_modules("session.js", _HIDDEN) == "heard"


def test_what_cannot_be_drawn_keeps_nobody_else_from_it(script_modules: ScriptModules) -> None:
    failures = script_modules("pace.js", _FAILS)
    assert len(failures) == 1
    assert "no canvas" in failures[0]
