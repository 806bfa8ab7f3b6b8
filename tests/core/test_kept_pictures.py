"""The pictures that modules keep among the files of a run."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from dimos_streams.errors import MessageError
from dimos_streams.module import kept_pictures
from dimos_streams.module.kept_pictures import keep_picture


def _keep(run_dir: Path, number: int, size: int) -> None:
    path = keep_picture(run_dir, f"{number}.jpg", bytes(size))
    os.utime(path, (number, number))


def _kept(run_dir: Path) -> list[int]:
    return sorted(int(path.stem) for path in (run_dir / "pictures").iterdir())


def test_the_newest_pictures_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_pictures, "MAX_PICTURES", 3)
    for number in (8, 9, 10, 11):
        _keep(tmp_path, number, 10)
    assert _kept(tmp_path) == [9, 10, 11]
    monkeypatch.setattr(kept_pictures, "MAX_BYTES", 100)
    for number, size, left in ((12, 80, [10, 11, 12]), (13, 20, [12, 13]), (14, 200, [14])):
        _keep(tmp_path, number, size)
        assert _kept(tmp_path) == left


def test_half_a_picture_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, data: bytes) -> int:
        self.touch()
        raise OSError(28, "no space left")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="no space left"):
        keep_picture(tmp_path, "1.jpg", b"x")
    assert _kept(tmp_path) == []


def test_a_picture_that_is_kept_again_is_whole_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write, seen = keep_picture(tmp_path, "1.jpg", b"picture"), Path.write_bytes, []

    def slow(self: Path, data: bytes) -> int:
        write(self, data[:3])
        seen.append(path.read_bytes())
        return write(self, data)

    monkeypatch.setattr(Path, "write_bytes", slow)
    assert keep_picture(tmp_path, "1.jpg", b"picture") == path
    assert seen == [path.read_bytes()] == [b"picture"]
    assert _kept(tmp_path) == [1]


def test_a_picture_that_claims_to_be_huge_is_not_kept(tmp_path: Path) -> None:
    with pytest.raises(MessageError, match="claims 30000x30000 pixels"):
        keep_picture(tmp_path, "1.png", b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 30_000, 30_000))
    assert not (tmp_path / "pictures").exists()
