"""How old a camera's picture is when a browser has it on the screen, and how soon the page shows anything.

Wants a Chromium and the extra `test`:

    python -m benchmarks.live_page [SECONDS]

The age is from the exposure, the picture's own stamp, to the moment in which the page tells the bridge that the
picture is drawn.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.browser.chromium import find_chromium, launched
from tests.browser.live_run import live_run
from tests.browser.pixels import CAMERA, FOLLOWED, MAP, ROBOT, blot
from tests.browser.waiting import until

_MEASURE = """
    window.ages = [];
    const stamps = new Map();
    window.WebSocket = class extends WebSocket {
        constructor(...given) {
            super(...given);
            this.addEventListener("message", ({ data }) => {
                if (!(data instanceof ArrayBuffer)) return;
                const length = new DataView(data).getUint32(0, true);
                const { topic, stamp } = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
                stamps.set(topic, stamp);
            });
        }
        send(text) {
            super.send(text);
            const { seen } = JSON.parse(text);
            if (seen === "/color_image") window.ages.push(Date.now() - stamps.get(seen) / 1000);
        }
    };
"""
_SIZE = {"width": 1280, "height": 800}


def main() -> None:
    """See above."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    chromium = find_chromium()
    if chromium is None:
        raise SystemExit("there is no Chromium on this machine (Debian: apt-get install chromium-headless-shell)")
    with tempfile.TemporaryDirectory() as state, live_run(Path(state)) as run, launched(chromium) as browser:
        run.follow()
        page = browser.new_page(viewport=_SIZE)  # type: ignore[arg-type]
        page.add_init_script(_MEASURE)
        began = time.monotonic()
        page.goto(run.url)
        until(page, lambda: blot(page, CAMERA, FOLLOWED) and blot(page, MAP, ROBOT))
        print(f"camera, box, map and robot are seen after {time.monotonic() - began:.2f} s")
        page.evaluate("() => { window.ages.length = 0 }")
        page.wait_for_timeout(seconds * 1000)
        ages: list[float] = page.evaluate("window.ages")
    found = statistics.quantiles(ages, n=20)
    print(
        f"{len(ages)} pictures in {seconds:g} s, drawn p50 {found[9]:.0f} ms, p95 {found[18]:.0f} ms after exposure"
    )


if __name__ == "__main__":
    main()
