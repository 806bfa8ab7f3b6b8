"""Files behind links, also behind those that lead nowhere."""

from __future__ import annotations

from pathlib import Path

import dimos_streams
from dimos_streams.common.process.disk import real_path


def test_the_file_behind_links_is_found_and_a_circle_of_them_is_no_bug(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "circle").symlink_to("circle")
    assert real_path(tmp_path / "link") == real_path(tmp_path) / "file"
    assert real_path(tmp_path / "circle") == real_path(tmp_path) / "circle"
    assert real_path(tmp_path / "\0") == tmp_path / "\0"


def test_nobody_follows_links_in_another_way() -> None:
    """``Path.resolve`` raises ``RuntimeError`` for a circle of links."""
    sources = Path(dimos_streams.__file__).parent.rglob("*.py")
    assert [path for path in sources if ".resolve()" in path.read_text("utf-8")] == []
