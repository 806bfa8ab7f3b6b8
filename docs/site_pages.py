"""Makes pages of the site: files beside docs/ join it, and links to what is no page become plain names."""

from __future__ import annotations

import os.path
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "examples/README.md": "examples.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
"""Files outside of docs/, by the page that each becomes."""
_LINK = re.compile(r"\[([^\[\]]*)\]\((?!https?:|#)([^()#\s]+)(#[^()\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    sources = {target: source for source, target in PAGES.items()}
    uri = page.file.src_uri
    folder = (ROOT / sources[uri] if uri in sources else ROOT / "docs" / uri).parent

    def moved(link: re.Match[str]) -> str:
        text, target, anchor = link[1], link[2], link[3] or ""
        path = Path(os.path.normpath(folder / target))
        if not path.is_relative_to(ROOT) or not path.exists():
            return link[0]
        inside = path.relative_to(ROOT).as_posix()
        offset = PAGES.get(inside) or inside.removeprefix("docs/") * inside.startswith("docs/")
        return f"[{text}]({os.path.relpath(offset, Path(uri).parent)}{anchor})" if offset else text

    return _LINK.sub(moved, markdown)
