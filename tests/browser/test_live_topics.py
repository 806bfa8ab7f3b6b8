"""The page's client of ``WS /live``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from dimos_streams.messages.codec import channel_name, encode
from dimos_streams.messages.std_msgs import Float32
from tests.bridge.serving import Served, served
from tests.browser.conftest import Contexts
from tests.browser.waiting import until

CHANNELS = {"/level#std_msgs.Float32": "", "/color_image#sensor_msgs.Image": "", "/odd#kitchen_msgs.Kettle": ""}
_WATCH = """async () => {
    const { Live } = await import("/dashboard/link/live.js");
    history.replaceState(null, "", "/");
    window.live = new Live({ token: () => "" });
    window.taken = [];
    window.also = 0;
    window.live.onTopics((topics) => { window.names = topics.map(({ topic }) => topic); });
    window.unwatch = window.live.watch("/level", (header, payload) => {
        window.taken.push(header.message.data);
        return new Promise((done) => { window.done = done; });
    }, { maxHz: 100 });
    window.unwatchAlso = window.live.watch("/level", () => { window.also += 1; throw new Error("a mistake"); });
}"""
_HIDE = """(hidden) => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.fixture(scope="module")
def robot() -> Iterator[Served]:
    """A bridge of a run with topics."""
    with served(CHANNELS) as made:
        yield made


def test_frames_come_one_by_one_and_only_while_somebody_looks(robot: Served, contexts: Contexts) -> None:
    context, complaints = contexts.new()
    complaints.expect("a mistake")
    page, live = context.new_page(), robot.scene.bridge.live
    # A page that the test would fulfil may open no socket: for the browser it is not of this machine.
    page.goto(f"{robot.url}/dashboard/link/live.js")
    level = live.topic("/level")

    def publish(value: float) -> None:
        channel = channel_name("/level", Float32)
        robot.run(_published(lambda: robot.scene.inner.publish(channel, encode(Float32(data=value)))))

    page.evaluate(_WATCH)
    until(page, lambda: level.watched)
    assert page.evaluate("window.names") == ["/color_image", "/level", "/odd"]
    for value in (1.0, 2.0, 3.0):
        publish(value)
    until(page, lambda: page.evaluate("window.taken") == [1.0])
    until(page, lambda: level.number == 3)
    assert page.evaluate("window.taken") == [1.0], "the first one is not on the screen yet"
    page.evaluate("window.done()")
    until(page, lambda: page.evaluate("window.taken") == [1.0, 3.0])
    assert page.evaluate("window.also") == 2, "one that fails keeps the others from nothing"

    page.evaluate(_HIDE, arg=True)
    until(page, lambda: live.viewers == 0)
    page.evaluate(_HIDE, arg=False)
    until(page, lambda: level.watched)
    page.evaluate("window.unwatch()")
    publish(4.0)
    until(page, lambda: page.evaluate("window.also") == 3)
    page.evaluate("window.unwatchAlso()")
    until(page, lambda: live.viewers == 0)

    page.evaluate("void (window.unwatch = window.live.watch('/odd', () => 0))")
    until(page, lambda: "kitchen_msgs.Kettle" in (page.evaluate("window.live.errors['/odd']") or ""))
    page.evaluate("window.unwatch()")


async def _published(publish: Callable[[], None]) -> None:
    publish()
