"""Makes the pictures of README and docs/dashboard.md: the real page, in a real browser, on a real run.

Wants Debian's Chromium and the extra `test`, and a machine that does nothing else:

    python -m docs.make_pictures           # all
    python -m docs.make_pictures film      # docs/follow-person.webp, the first moments of the mission
    python -m docs.make_pictures stills    # docs/dashboard.png and docs/dashboard-dark.png
"""

from __future__ import annotations

import base64
import io
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page

from tests.browser.chromium import find_chromium, launched
from tests.browser.live_run import FOLLOW, LiveRun, live_run
from tests.browser.pixels import CAMERA, FOLLOWED, MAP, ROBOT, SHIRT, blot
from tests.browser.waiting import until

DOCS = Path(__file__).parent
SIZE: Any = {"width": 1280, "height": 800}
FILM_WIDTH = 1000
FILM_S = 12.0
FRAME_MS = 200
LARGEST = 2_000_000
BOUND_S = 60.0


def film(browser: Browser, run: LiveRun) -> None:
    """Somebody opens the page and tells the robot to follow; what is seen then, as it is seen."""
    page = opened(browser, run, "light")
    until(page, lambda: blot(page, MAP, ROBOT) and blot(page, CAMERA, SHIRT), BOUND_S)
    frames: list[tuple[float, bytes]] = []
    debugger = page.context.new_cdp_session(page)

    def keep(frame: dict[str, Any]) -> None:
        frames.append((frame["metadata"]["timestamp"], base64.b64decode(frame["data"])))
        debugger.send("Page.screencastFrameAck", {"sessionId": frame["sessionId"]})

    debugger.on("Page.screencastFrame", keep)
    debugger.send("Page.startScreencast", {"format": "png"})
    page.wait_for_timeout(500)
    page.locator("body").press("/")
    page.keyboard.type(FOLLOW, delay=15)
    page.keyboard.press("Enter")
    page.wait_for_timeout(FILM_S * 1000)
    debugger.send("Page.stopScreencast")
    page.context.close()
    path = DOCS / "follow-person.webp"
    write_film(path, frames)
    size = path.stat().st_size
    print(f"{path}: {size / 1e6:.2f} MB, {len(frames)} frames painted in {frames[-1][0] - frames[0][0]:.1f} s")
    assert size < LARGEST, "too large for who reads README"


def write_film(path: Path, frames: list[tuple[float, bytes]]) -> None:
    """One picture for each fifth of a second: the newest until then."""
    count = int((frames[-1][0] - frames[0][0]) * 1000 / FRAME_MS)
    newest = [[data for at, data in frames if at <= frames[0][0] + n * FRAME_MS / 1000][-1] for n in range(count)]
    pictures = [Image.open(io.BytesIO(data)).convert("RGB") for data in newest]
    height = round(pictures[0].height * FILM_WIDTH / pictures[0].width)
    first, *rest = [picture.resize((FILM_WIDTH, height), Image.Resampling.LANCZOS) for picture in pictures]
    first.save(
        path, save_all=True, append_images=rest, duration=FRAME_MS, loop=0, quality=60, method=4, minimize_size=True
    )


def stills(browser: Browser, run: LiveRun) -> None:
    """The page in the middle of a mission, with a question to the operator; light and dark."""
    run.follow()
    page = opened(browser, run, "light")
    until(page, lambda: blot(page, CAMERA, FOLLOWED) and blot(page, MAP, ROBOT), BOUND_S)
    page.wait_for_timeout(8000)
    run.say("go to 1.5 0.5")
    page.get_by_role("button", name="Approve", exact=True).wait_for()
    page.wait_for_timeout(1500)
    for colours, name in (("light", "dashboard.png"), ("dark", "dashboard-dark.png")):
        page.emulate_media(color_scheme=colours)  # type: ignore[arg-type]
        page.wait_for_timeout(1000)
        page.screenshot(path=DOCS / name)
        print(f"{DOCS / name}: {(DOCS / name).stat().st_size / 1e6:.2f} MB")
    page.context.close()


def opened(browser: Browser, run: LiveRun, colours: Any) -> Page:
    """The page, in a window as people have it."""
    page = browser.new_context(viewport=SIZE, color_scheme=colours).new_page()
    page.set_default_timeout(60_000)
    page.goto(run.url)
    return page


def main() -> None:
    """See above."""
    wanted = sys.argv[1:] or ["stills", "film"]
    chromium = find_chromium()
    if chromium is None:
        raise SystemExit("there is no Chromium on this machine (Debian: apt-get install chromium-headless-shell)")
    for name in wanted:
        with tempfile.TemporaryDirectory() as state, live_run(Path(state)) as run, launched(chromium) as browser:
            {"film": film, "stills": stills}[name](browser, run)


if __name__ == "__main__":
    main()
