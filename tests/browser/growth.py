"""What a page occupies, after everything that it does not need has been collected."""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import CDPSession, Page

_LOOKS = 3
_PAUSE_MS = 150
_PICTURES = """{
    const make = window.createImageBitmap.bind(window);
    window.pictures = { made: 0, open: 0 };
    window.createImageBitmap = async (...given) => {
        const picture = await make(...given);
        const close = picture.close.bind(picture);
        pictures.made += 1;
        pictures.open += 1;
        picture.close = () => {
            pictures.open -= Number(picture.width > 0);  // a closed one has none
            close();
        };
        return picture;
    };
}"""


@dataclass(frozen=True)
class Occupied:
    """Bytes of the JavaScript heap, bytes of buffers beside it, and counts of what else lives."""

    heap: int
    buffers: int
    nodes: int
    listeners: int

    def __str__(self) -> str:
        sizes = f"{self.heap / 1e6:.2f} MB, {self.buffers / 1e6:.2f} MB in buffers"
        return f"{sizes}, {self.nodes} nodes, {self.listeners} listeners"


class Growth:
    """Looks at a page through the browser's debugger."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._debugger: CDPSession = page.context.new_cdp_session(page)
        self._debugger.send("Performance.enable")
        self._debugger.send("HeapProfiler.enable")

    def now(self) -> Occupied:
        """The least of several looks: at each some of what was just drawn is still held."""
        return min((self._look() for _ in range(_LOOKS)), key=lambda occupied: occupied.heap)

    def _look(self) -> Occupied:
        self._page.wait_for_timeout(_PAUSE_MS)
        self._debugger.send("HeapProfiler.collectGarbage")
        metrics = {each["name"]: each["value"] for each in self._debugger.send("Performance.getMetrics")["metrics"]}
        buffers = self._debugger.send("Runtime.getHeapUsage")["backingStorageSize"]
        counts = (int(metrics[name]) for name in ("Nodes", "JSEventListeners"))
        return Occupied(int(metrics["JSHeapUsedSize"]), int(buffers), *counts)


class Pictures:
    """Those that a page has decoded: they are neither on the heap nor in buffers, and live until they are closed."""

    def __init__(self, page: Page) -> None:
        """``page`` has not been opened yet."""
        self._page = page
        page.add_init_script(_PICTURES)

    @property
    def made(self) -> int:
        """How many there have been."""
        return int(self._page.evaluate("pictures.made"))

    @property
    def open(self) -> int:
        """How many of them have not been closed."""
        return int(self._page.evaluate("pictures.open"))
