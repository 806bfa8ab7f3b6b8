"""axe-core looks at a page as people who see little, or nothing, have to use it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Page

_AXE = Path(__file__).with_name("axe") / "axe.min.js"
_RUN = """async () => (await axe.run(document, { resultTypes: ["violations"], preload: false })).violations.map(
    (each) => `${each.id} (${each.impact}): ${each.help}: ` + each.nodes.map(
        (node) => `${node.target.join(" ")}: ${node.failureSummary}`).join("; "))"""


def violations(page: Page) -> list[str]:
    """What breaks a rule of WCAG 2.2 AA, or a good habit."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_axe())
    found: list[str] = page.evaluate(_RUN)
    return found


@cache
def _axe() -> str:
    if not _AXE.exists():
        pytest.skip("axe-core is in the repository only: the source archive is under the package's licences alone")
    return _AXE.read_text(encoding="utf-8")
