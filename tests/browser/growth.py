"""What a page occupies, after everything that it does not need has been collected."""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import CDPSession, Page

_LOOKS = 5
_PAUSE_MS = 150


@dataclass(frozen=True)
class Occupied:
    """Bytes of the JavaScript heap and counts of what else lives."""

    heap: int
    nodes: int
    listeners: int

    def __str__(self) -> str:
        return f"{self.heap / 1e6:.2f} MB, {self.nodes} nodes, {self.listeners} listeners"


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
        return Occupied(int(metrics["JSHeapUsedSize"]), int(metrics["Nodes"]), int(metrics["JSEventListeners"]))
