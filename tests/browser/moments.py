"""Pictures of ten moments of missions, as somebody sees them who knows no documentation.

    python -m tests.browser.moments build/moments [lost paused …]

Each is a real run, to which happens what its name says: nothing of it is made up. Each moment is seen light, dark
and narrow, and on a wide screen.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from playwright.sync_api import Browser, Page

from tests.browser.chromium import find_chromium, launched
from tests.cli.machine import Machine, read_until

_BOUND_S = 180.0
_SETTLES_MS = 1500
"""The time that a picture waits, in which what moves on the page comes to rest and the map fills."""
_LOOKS: tuple[tuple[str, Any, Any], ...] = (
    ("", {"width": 1280, "height": 800}, "light"),
    ("-dark", {"width": 1280, "height": 800}, "dark"),
    ("-wide", {"width": 1920, "height": 1080}, "light"),
    ("-narrow", {"width": 390, "height": 3600}, "dark"),
)
"""Names, sizes of the window, colours. The narrow one is as high as the page: what is out of sight is not drawn."""
_LOOK_SETTLES_MS = 400
"""The time in which a page of another size or other colours has been drawn anew, which nothing tells."""


@dataclass(frozen=True)
class Watched:
    """A run, and a page that looks at it."""

    url: str
    page: Page
    to: Path

    def get(self, path: str) -> Any:
        return requests.get(self.url + path, timeout=20).json()

    def say(self, text: str, agent: str = "") -> None:
        body = {"skill": "say", "agent": agent, "arguments": {"text": text}, "caller": "operator"}
        answer = requests.post(f"{self.url}/calls", json=body, timeout=20)
        assert answer.status_code == 201, answer.text

    def process(self, module: str) -> int:
        """The process of a module."""
        return next(int(each["pid"]) for each in self.get("/modules") if each["name"] == module)

    @contextlib.contextmanager
    def killed(self, module: str) -> Iterator[None]:
        """Kill a module's process, and each that is started in its place."""
        ended = threading.Event()

        def kill() -> None:
            while not ended.wait(0.05):
                with contextlib.suppress(requests.RequestException, ProcessLookupError, StopIteration):
                    os.kill(self.process(module), signal.SIGKILL)

        killing = threading.Thread(target=kill)
        killing.start()
        yield
        ended.set()
        killing.join()

    def says(self, pattern: str) -> None:
        """Wait until something of the page reads like this."""
        self.page.get_by_text(re.compile(pattern)).first.wait_for(timeout=_BOUND_S * 1000)

    def until(self, condition: Callable[[], Any]) -> None:
        """Wait for a condition; a bridge that is on its way back does not answer meanwhile."""
        deadline = time.monotonic() + _BOUND_S
        while time.monotonic() < deadline:
            with contextlib.suppress(requests.ConnectionError):
                if condition():
                    return
            self.page.wait_for_timeout(100)
        raise TimeoutError("it did not come true")

    def calls(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get("/calls?limit=1000")
        return found

    def follows(self) -> bool:
        return any(call["skill"].endswith("follow_person") and "ollowing" in call["text"] for call in self.calls())

    def said(self, skill: str, pattern: str) -> bool:
        """Whether a call that is open says something now."""
        return any(
            call["skill"].endswith(skill) and call["state"] == "open" and re.search(pattern, call["text"])
            for call in self.calls()
        )

    def heard(self, pattern: str) -> bool:
        """Whether a call has said something like this."""
        return any(re.search(pattern, each["event"]["text"]) for each in self.get("/events?limit=1000"))

    def picture(self, name: str, settles_ms: int = _SETTLES_MS) -> None:
        self.page.wait_for_timeout(settles_ms)
        for look, size, colours in _LOOKS:
            self.page.set_viewport_size(size)
            self.page.emulate_media(color_scheme=colours)
            self.page.wait_for_timeout(_LOOK_SETTLES_MS)
            self.page.screenshot(path=self.to / f"{name}{look}.png")
        self.page.set_viewport_size(_LOOKS[0][1])
        print(name, flush=True)  # noqa: T201 - it is a script


@contextlib.contextmanager
def watched(browser: Browser, to: Path, blueprint: str, *settings: str) -> Iterator[Watched]:
    """A run of a blueprint with settings, and a page that has heard of it."""
    with tempfile.TemporaryDirectory() as state:
        machine = Machine(Path(state))
        options = [word for setting in settings for word in ("--set", setting)]
        with machine.started("run", blueprint, "--port", str(machine.port), *options) as process:
            began = read_until(process, "http://")
            address = re.search(r"http://127\.0\.0\.1:\d+", began)
            assert address, began
            page = browser.new_context(viewport=_LOOKS[0][1]).new_page()
            page.goto(address[0])
            run = Watched(address[0], page, to)
            run.until(lambda: any(skill["name"].endswith("say") for skill in run.get("/skills")))
            try:
                yield run
            finally:
                page.context.close()
                os.killpg(process.pid, signal.SIGINT)
                process.communicate(timeout=_BOUND_S)


def following(browser: Browser, to: Path) -> None:
    """Lost, found again; paused; a call rejected because of a lease; the detector dead; the bridge gone."""
    hides = "robot.events=[{at_s: 18, hide: person_red}, {at_s: 26, show: person_red}]"
    with watched(browser, to, "follow-person", hides, "follow.give_up_after_s=40") as run:
        run.say("follow the person in red")
        run.until(run.follows)
        run.until(lambda: run.heard("^Lost person in red"))
        run.picture("1-lost")
        run.until(lambda: run.heard("^Found person in red again"))
        run.picture("2-found-again")
        run.page.locator("body").press("Space")
        run.until(lambda: run.said("follow_person", "held"))
        run.picture("4-paused")
        run.page.locator("body").press("Space")
        run.until(lambda: run.said("follow_person", "^following"))
        run.say("turn left 30")
        run.says("needs .base.|holds")
        run.picture("7-rejected")
        os.kill(run.process("detector"), signal.SIGSTOP)
        run.picture("6-detector-dead", 4000)
        os.kill(run.process("detector"), signal.SIGCONT)
        run.until(lambda: run.said("follow_person", "^following"))
        with run.killed("bridge"):
            run.page.get_by_text("Connection lost").wait_for()
            run.picture("5-bridge-gone")
        run.page.get_by_text("Live", exact=True).wait_for()
        run.picture("5b-bridge-back", 4000)


def approval(browser: Browser, to: Path) -> None:
    """A call waits for an operator; when it may, it is done, and the mission ends."""
    with watched(browser, to, "follow-person", "agent.approval={rules: [{skill: go_to}]}") as run:
        run.say("go to 2 1")
        run.page.get_by_role("button", name="Approve", exact=True).wait_for()
        run.picture("3-approval", 5000)
        run.page.get_by_role("button", name="Approve", exact=True).click()
        run.until(lambda: not run.said("say", ""))
        run.picture("10-end", 2000)


def model(browser: Browser, to: Path) -> None:
    """The model's server does not answer."""
    nobody = ("agent.model=openai:some-model", "agent.base_url=http://127.0.0.1:9/v1")
    with watched(browser, to, "follow-person", *nobody) as run:
        run.say("follow the person in red")
        run.says("model fails")
        run.picture("8-model-failing", 5000)


def robots(browser: Browser, to: Path) -> None:
    """Two robots; one of them is stopped."""
    with watched(browser, to, "two-robots") as run:
        run.say("follow the person in red", "robot1")
        run.say("turn left 360", "robot2")
        run.until(run.follows)
        run.picture("9-two-robots", 4000)
        run.page.get_by_role("button", name="Stop robot1").click()
        run.until(lambda: [each["robot"] for each in run.get("/healthz")["stopped"]["stops"]] == ["robot1"])
        run.picture("9b-one-of-them-stopped", 3000)


MOMENTS = {each.__name__: each for each in (following, approval, model, robots)}


def main(to: str, *names: str) -> None:
    """Make the pictures."""
    path = find_chromium()
    assert path is not None, "there is no Chromium on this machine (Debian: apt-get install chromium-headless-shell)"
    folder = Path(to)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or MOMENTS:
        with launched(path) as browser:
            MOMENTS[name](browser, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
