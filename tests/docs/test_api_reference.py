"""docs/api.md, the reference and the package name the same public modules, and the site has every page."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ROWS = re.findall(
    r"^\| (.+) \| (`.+`) \| \[\w+\]\((reference/\w+\.md)\) \|$", (DOCS / "api.md").read_text(), re.MULTILINE
)
PUBLIC = [(name, page) for _, names, page in ROWS for name in re.findall(r"`(dimos_streams[\w.]*)`", names)]


@pytest.mark.parametrize(("name", "page"), PUBLIC, ids=[name for name, _ in PUBLIC])
def test_a_public_module_can_be_imported_and_has_a_description(name: str, page: str) -> None:
    assert (importlib.import_module(name).__doc__ or "").strip()


def test_the_reference_has_what_is_public_and_no_more() -> None:
    described = {
        (name, path.relative_to(DOCS).as_posix())
        for path in sorted((DOCS / "reference").glob("*.md"))
        for name in re.findall(r"^::: (\S+)$", path.read_text(), re.MULTILINE)
    }
    assert described == set(PUBLIC)


def test_documents_import_what_is_public() -> None:
    """Or one of the modules that a blueprint names."""
    named = {f"dimos_streams.{each}.module" for each in ("agent", "bridge", "robot.velocity_gate")}
    for document in [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]:
        for name in re.findall(r"^from (dimos_streams[\w.]*) import", document.read_text(), re.MULTILINE):
            public = any(name == module or name.startswith("dimos_streams.messages.") for module, _ in PUBLIC)
            assert public or name in named or name.startswith("dimos_streams.skills"), (document.name, name)


def test_every_page_has_a_place_in_the_site() -> None:
    listed = set(re.findall(r"^ +- ([\w./-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} <= listed
