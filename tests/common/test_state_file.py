"""State that was saved outlasts a disk that takes no more, wherever it refuses."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from dimos_streams.common.process.disk import SavedState, load_state, replace_text, save_state


def full(*args: Any) -> NoReturn:
    raise OSError(28, "No space left on device")


def cut(path: Path, text: str, **how: Any) -> int:
    """Write the beginning, as a disk does that becomes full meanwhile."""
    path.write_bytes(text[:1].encode())
    full()


@pytest.mark.parametrize(
    ("owner", "name", "fault"), [(Path, "write_text", cut), (Path, "replace", full), (os, "fsync", full)]
)
def test_what_was_saved_is_there_until_something_newer_is(
    owner: object, name: str, fault: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gate.holds.json"
    assert load_state(path) == SavedState(None, outdated=False)
    with monkeypatch.context() as disk:
        disk.setattr(owner, name, fault)
        with pytest.raises(OSError, match="No space left"):
            save_state(path, "first")
    assert load_state(path) == SavedState(None, outdated=True)
    save_state(path, "second")
    assert load_state(path) == SavedState(b"second", outdated=False)
    with monkeypatch.context() as disk:
        disk.setattr(owner, name, fault)
        for _ in range(2):
            with pytest.raises(OSError, match="No space left"):
                save_state(path, "third")
    assert load_state(path) == SavedState(b"second", outdated=True)
    assert [stat.S_IMODE(left.stat().st_mode) for left in tmp_path.iterdir()] == [0o600]
    save_state(path, "third")
    assert load_state(path) == SavedState(b"third", outdated=False)
    assert list(tmp_path.iterdir()) == [path]


def test_what_outlasts_the_machine_is_on_the_disk_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, synced = tmp_path / "gate.holds.json", list[tuple[int, str]]()
    replace_text(path, "first")

    def fsync(descriptor: int) -> None:
        synced.append((os.fstat(descriptor).st_ino, path.read_text()))

    monkeypatch.setattr(os, "fsync", fsync)
    save_state(path, "second")
    assert synced == [(path.stat().st_ino, "first"), (tmp_path.stat().st_ino, "second")]


def test_what_need_not_outlast_the_machine_does_not_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", full)
    replace_text(tmp_path / "run.json", "a record")
    assert (tmp_path / "run.json").read_text() == "a record"


@pytest.mark.parametrize("save", [save_state, replace_text])
def test_a_state_is_the_same_text_whatever_locale_the_machine_has(
    save: Callable[[Path, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(io, "text_encoding", lambda encoding, level=2: encoding or "latin-1")
    save(tmp_path / "journal.stops.json", '{"reason":"Stoß, 停"}')
    saved = SavedState('{"reason":"Stoß, 停"}'.encode(), outdated=False)
    assert load_state(tmp_path / "journal.stops.json") == saved


def test_what_somebody_else_has_left_there_makes_no_secret_readable_to_others(tmp_path: Path) -> None:
    path, left = tmp_path / "run.json", tmp_path / "run.new"
    left.touch()
    left.chmod(0o666)
    replace_text(path, "a record")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
