"""Files behind links and in homes, also behind links that lead nowhere, and in homes that nobody knows."""

from __future__ import annotations

from pathlib import Path

import pytest

import dimos_streams
from dimos_streams.common.process.disk import at_home, real_path


def test_the_file_behind_links_is_found_and_a_circle_of_them_is_no_bug(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "circle").symlink_to("circle")
    assert real_path(tmp_path / "link") == real_path(tmp_path) / "file"
    assert real_path(tmp_path / "circle") == real_path(tmp_path) / "circle"
    assert real_path(tmp_path / "\0") == tmp_path / "\0"


def test_nobody_follows_links_or_looks_for_homes_in_another_way() -> None:
    """``Path.resolve`` raises ``RuntimeError`` for a circle of links, and ``Path.expanduser`` for a home that nobody
    knows, which runs report as an error of their own: their files need one."""
    sources = Path(dimos_streams.__file__).parent.rglob("*.py")
    texts = {path: path.read_text("utf-8") for path in sources}
    assert [path for path, text in texts.items() if ".resolve()" in text] == []
    assert [path.name for path, text in texts.items() if ".expanduser()" in text] == ["run_directories.py"]


def test_a_path_in_a_home_that_nobody_knows_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert at_home("~/token") == tmp_path / "token"
    assert at_home("~no-such-user/token") == Path("~no-such-user/token")
