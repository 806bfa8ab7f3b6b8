"""Commands of a hub whose database was put back from a copy, or is used by somebody with another clock."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.hub.storage.storage import HubStorage
from tests.hub.stored import command, opened

pytestmark = pytest.mark.feature("H2")


@pytest.mark.parametrize("set_s", [10, -86_400])
@pytest.mark.parametrize("is_new", [False, True])
def test_a_database_that_was_put_back_numbers_no_command_as_one_that_robots_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, set_s: int, is_new: bool
) -> None:
    """An answer names the command by its number alone: a late one would be taken for that to another command."""
    file, copy = tmp_path / "hub.sqlite", tmp_path / "copy.sqlite"
    with opened(f"sqlite:///{file}") as storage:
        given = [] if is_new else [_given(storage, "before")]
    shutil.copyfile(file, copy)
    with opened(f"sqlite:///{file}") as storage:
        given += [_given(storage, f"k{number}") for number in range(3)]
    file.unlink()
    shutil.copyfile(copy, file)
    wall = clock.utime
    monkeypatch.setattr(clock, "utime", lambda: wall() + set_s * 1_000_000)
    with opened(f"sqlite:///{file}") as storage:
        others = [_given(storage, f"other {number}") for number in range(3)]
    assert not set(given) & set(others)
    assert set_s < 0 or max(given) < min(others), "an order to stop has not overtaken what was asked for later"


@pytest.mark.parametrize("ahead_s", [-3600, 3600])
def test_what_a_removed_robot_had_to_do_is_over_by_whatever_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead_s: int
) -> None:
    """The program that removes it begins to count where the wall clock is now, the hub where that was long ago."""
    url = f"sqlite:///{tmp_path}/hub.sqlite"
    with opened(url) as storage:
        storage.robots.add("r1")
        _given(storage, "k")
        wall = clock.utime
        monkeypatch.setattr(clock, "utime", lambda: wall() + ahead_s * 1_000_000)
        with opened(url) as other:
            other.robots.remove("r1")
            other.robots.add("r1")
        storage.robots.connect("r1", "b", "process", 60)
        assert storage.commands.due({"r1": "b"}) == []


def test_what_is_noted_for_a_robot_after_its_removal_is_not_the_next_ones(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/hub.sqlite") as storage:
        storage.robots.add("r1")
        storage.robots.remove("r1")
        _given(storage, "k")  # for whoever had found the robot before, and waited for the database
        storage.robots.add("r1")
        storage.robots.connect("r1", "b", "process", 60)
        assert storage.commands.due({"r1": "b"}) == []


def test_what_was_given_before_the_clock_was_set_back_is_over_when_the_hub_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody may look at it before the clock says again when that was."""
    url = f"sqlite:///{tmp_path}/hub.sqlite"
    with opened(url) as storage:
        storage.robots.add("r1")
        id = _given(storage, "k")
    with monkeypatch.context() as patch:
        wall = clock.utime
        patch.setattr(clock, "utime", lambda: wall() - 600_000_000)
        with opened(url):
            pass
    with opened(url) as storage:
        storage.robots.connect("r1", "b", "process", 60)
        assert storage.commands.due({"r1": "b"}) == []
        assert storage.commands.states([id])[id].left_s <= 0


def _given(storage: HubStorage, key: str) -> int:
    id = storage.commands.give(command(key))
    assert isinstance(id, int)
    return id
