"""The orders to robots that a hub keeps until they are answered or have expired."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.fleet.commands import Answer
from dimos_streams.fleet.lanes import MOST_AT_ONCE
from dimos_streams.hub.storage.storage import HubStorage
from dimos_streams.tool_stream.gateway import CallView
from tests.hub.stored import batch, clock_owner, command, due, entry, opened


@pytest.mark.slow
def test_commands_of_one_key_are_the_same_by_their_values(storage: HubStorage) -> None:
    id = storage.commands.give(command(body='{"arguments":{"n":1,"x":-0.0}}'))
    assert storage.commands.give(command(body='{"arguments":{"x":0,"n":1.0}}')) == id
    for other in ('{"n":true,"x":0}', '{"n":1}', '{"n":1,"x":0,"y":0}', '{"n":"1","x":0}'):
        given = storage.commands.give(command(body=f'{{"arguments":{other}}}'))
        assert "another command" in str(given), other


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_a_command_is_one_by_its_key_and_is_handed_to_each_stream_until_it_is_answered(storage: HubStorage) -> None:
    storage.robots.add("r1")
    id = storage.commands.give(command())
    assert isinstance(id, int)
    assert storage.commands.give(command()) == id
    assert "another command" in str(storage.commands.give(command(path="/else")))
    assert not storage.commands.states([id])[id].sent
    assert storage.commands.due({"r2": "a"}) == []
    assert [each.id for each in due(storage, "a")] == [id]
    assert due(storage, "a") == [], "once on a stream"
    (again,) = due(storage, "b")
    assert (again.key, 50 < again.expires_in_s <= 60) == ("k", True)
    storage.commands.answer("r2", Answer(id=id, outcome="answered", status=200))
    storage.commands.answer("r1", Answer(id=id, outcome="answered", status=201, body={"n": 1}))
    storage.commands.answer("r1", Answer(id=id, outcome="expired", status=504))
    state = storage.commands.states([id])[id]
    assert (state.sent, state.outcome, state.status, state.body) == (True, "answered", 201, '{"n":1}')
    assert due(storage, "c") == []
    expired = storage.commands.give(command("other", path="/robots/stop", expires_in_s=-1.0))
    assert due(storage, "c") == [], f"{expired} has expired"
    storage.commands.forget(0)
    assert list(storage.commands.states([id])) == [id]
    storage.commands.forget(-61.0)
    assert storage.commands.states([id]) == {}


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_what_a_removed_robot_had_to_do_is_nothing_for_the_next_of_its_name(storage: HubStorage) -> None:
    for robot in ("r1", "r2"):
        storage.robots.add(robot)
        storage.robots.connect(robot, "a", "process", 60)
        storage.store([batch(entry(1, "on it", type="open"), entry(2, call="c2"), robot=robot)])
    storage.store([batch(entry(3, "done", call="c2", type="close", outcome="completed"))])
    id, other = storage.commands.give(command()), storage.commands.give(command(robot="r2"))
    assert isinstance(id, int)
    storage.robots.remove("r1")
    state = storage.commands.states([id])[id]
    assert (state.sent, state.left_s <= 0) == (False, True), "whoever waits learns that it was not carried out"
    storage.robots.add("r1")
    storage.robots.connect("r1", "b", "process", 60)
    assert [each.id for each in storage.commands.due({"r1": "b", "r2": "a"})] == [other]
    rows = storage.calls.newest(10, robot=None, state=None, before=None)
    calls = {(row.robot, row.call_id): CallView.model_validate_json(row.record) for row in rows}
    assert [(row.robot, row.call_id) for row in rows if not row.closed] == [("r2", "c2"), ("r2", "c1")]
    lost = calls["r1", "c1"]
    assert (lost.state, lost.outcome, "removed from the fleet" in lost.text) == ("closed", "lost", True)
    assert calls["r1", "c2"].outcome == "completed"
    storage.store([batch(entry(4, "it came through", type="close", outcome="completed"))])
    (row, _) = sorted(storage.calls.find("c1"), key=lambda row: row.robot)
    assert CallView.model_validate_json(row.record).outcome == "completed", "the same robot is back"


@pytest.mark.feature("H2")
@pytest.mark.parametrize("back_s", [5, 600, 3600])
def test_a_wall_clock_that_is_set_back_makes_no_command_younger(
    tmp_path: Path, back_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(f"sqlite:///{tmp_path}/hub.sqlite") as storage:
        storage.robots.add("r1")
        id = storage.commands.give(command(expires_in_s=10.0))
        wall = clock.utime
        monkeypatch.setattr(clock, "utime", lambda: wall() - back_s * 1_000_000)
        (handed,) = due(storage, "a")
        assert (handed.id, 0 < handed.expires_in_s <= 10) == (id, True)


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_a_command_that_is_given_later_than_now_has_expired_for_good(
    storage: HubStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.robots.add("r1")
    engines = clock_owner(storage)
    now = engines.now
    for number, looked in enumerate(("due", "states", "forget")):
        id = storage.commands.give(command(f"k{number}", expires_in_s=10.0))
        assert isinstance(id, int)
        with monkeypatch.context() as patch:
            patch.setattr(engines, "now", lambda db: now(db) - 600_000_000)
            if looked == "due":
                assert due(storage, "a") == []
            elif looked == "states":
                assert storage.commands.states([id])[id].left_s <= 0
            else:
                storage.commands.forget(3600.0)
        assert due(storage, "a") == [], "nor when the clock has come there again"
        state = storage.commands.states([id])[id]
        assert (state.sent, state.left_s <= 0) == (False, True), "known as one that was not carried out"
        other = command(f"k{number}", path="/robots/stop", expires_in_s=-1.0)
        assert storage.commands.give(other) != id, "its key is free"


@pytest.mark.feature("H2")
def test_commands_that_are_given_later_than_now_take_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MOST_AT_ONCE, "others", 1)
    with opened(f"sqlite:///{tmp_path}/hub.sqlite") as storage:
        storage.robots.add("r1")
        assert isinstance(storage.commands.give(command("first")), int)
        assert "wait already" in str(storage.commands.give(command("second")))
        engines = clock_owner(storage)
        now = engines.now
        monkeypatch.setattr(engines, "now", lambda db: now(db) - 600_000_000)
        assert isinstance(storage.commands.give(command("second")), int), "the first one is never sent any more"


@pytest.mark.slow
@pytest.mark.feature("H2")
@pytest.mark.parametrize("looked", ["due", "states", "forget"])
def test_a_command_that_another_hub_is_given_while_this_one_looks_has_not_expired(
    postgres_url: str, looked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(postgres_url) as storage:
        storage.robots.add("r1")
        storage.robots.connect("r1", "a", "process", 60)
        first = storage.commands.give(command("first", expires_in_s=60.0))
        assert isinstance(first, int)
        engines = clock_owner(storage)
        now = engines.now
        given: list[Any] = []

        def and_then_another_is_given(db: Any) -> int:
            read = now(db)
            if not given and threading.current_thread() is threading.main_thread():
                given.append(None)
                with ThreadPoolExecutor(1) as other:  # with a connection of its own
                    given[0] = other.submit(storage.commands.give, command("second", expires_in_s=60.0)).result(10)
            return read

        with monkeypatch.context() as patch:
            patch.setattr(engines, "now", and_then_another_is_given)
            match looked:
                case "due":
                    storage.commands.due({"r1": "a"})
                case "states":
                    storage.commands.states([first, first + 1])
                case "forget":
                    storage.commands.forget(3600.0)
        assert isinstance(given[0], int)
        assert storage.commands.states([given[0]])[given[0]].left_s > 50
