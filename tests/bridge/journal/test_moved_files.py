"""What was moved aside of a journal is found again."""

from __future__ import annotations

from pathlib import Path

from dimos_streams.journal.files.moved_files import has_predecessor, leave_behind, left_files


def test_it_is_found_whatever_the_journal_is_called(tmp_path: Path) -> None:
    path, other = tmp_path / "robot[1]*.sqlite", tmp_path / "robot1.sqlite"
    path.write_bytes(b"left")
    leave_behind(path)
    assert has_predecessor(path)
    assert [each.read_bytes() for each in left_files(path)] == [b"left"]
    other.with_name(f"{other.name}-wal").touch()
    assert not has_predecessor(other)
    assert left_files(tmp_path / "missing" / "journal") == []
