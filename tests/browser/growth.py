"""What a page occupies, after everything that it does not need has been collected."""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import CDPSession, Page


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
        self._debugger: CDPSession = page.context.new_cdp_session(page)
        self._debugger.send("Performance.enable")
        self._debugger.send("HeapProfiler.enable")

    def now(self) -> Occupied:
        """What is left after two collections: the first one lets go what the second one frees."""
        for _ in range(2):
            self._debugger.send("HeapProfiler.collectGarbage")
        metrics = {each["name"]: each["value"] for each in self._debugger.send("Performance.getMetrics")["metrics"]}
        return Occupied(int(metrics["JSHeapUsedSize"]), int(metrics["Nodes"]), int(metrics["JSEventListeners"]))
