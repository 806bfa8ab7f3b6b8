"""An order to stop outlasts a full disk: what was saved before stays, and who begins on that disk knows that more was
asked."""

from __future__ import annotations

import asyncio
import itertools
import threading
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.bridge.calls.stops import stop_state
from dimos_streams.bridge.calls.stops.stop_file import StopFile
from dimos_streams.bridge.calls.stops.stop_state import StopState
from dimos_streams.module.state_text import state_text
from dimos_streams.operator.messages.stop import Stop
from dimos_streams.operator.robot_orders import NO_ORDER, ORDERS, newest_order
from tests.bridge.serving import served
from tests.helpers import no_threads, until

pytestmark = pytest.mark.feature("K5")
FIRST, SECOND = Stop(robot="robot1", utime=1, reason="wet floor"), Stop(robot="robot2", utime=2)


def full(path: Path, content: object, **how: object) -> int:
    """Write nothing, as on a full disk."""
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("before", [StopState(), StopState().stop(FIRST)])
def test_an_order_that_could_not_be_written_holds_every_robot(
    before: StopState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.stops.json"
    assert stop_state.load(path) == StopState(), "there is none yet"
    if before.stops:
        assert stop_state.save(path, before) == ""
    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_text", full)
        assert "No space left on device" in stop_state.save(path, before.stop(SECOND))
        loaded = stop_state.load(path)
        assert "could not be written" in loaded.stops[""].reason
        assert loaded.stops.keys() - {""} == before.stops.keys(), "what was saved before is still known"
        covering = loaded.covering("robot2")
        assert covering is not None
        assert covering == loaded.stops[""]
    assert stop_state.save(path, StopState()) == ""
    assert stop_state.load(path) == StopState()
    assert list(tmp_path.iterdir()) == [path]


def test_a_stop_keeps_the_reasons_of_those_whose_place_it_takes() -> None:
    state = StopState().stop(FIRST).stop(SECOND)
    for utime, robot, reason in ((3, "", ""), (4, "", "test"), (5, "", "wet floor"), (6, "robot2", "")):
        state = state.stop(Stop(robot=robot, utime=utime, reason=reason))
    assert {name: stop.reason for name, stop in state.stops.items()} == {"": "test; wet floor", "robot2": ""}
    assert state.stops[""].utime == 5, "a release names the newest"
    assert (
        StopState().stop(FIRST).release("robot1").stop(FIRST.model_copy(update={"reason": ""})).stops["robot1"].reason
        == ""
    ), "a release ends reasons, too"


def test_who_was_released_while_all_others_are_stopped_stays_so(tmp_path: Path) -> None:
    state = StopState().stop(Stop(robot="", utime=1)).release("robot1")
    assert stop_state.save(tmp_path / "journal.stops.json", state) == ""
    assert stop_state.load(tmp_path / "journal.stops.json") == state


def test_each_order_has_a_higher_number_than_those_before_also_after_a_restart_with_a_clock_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, state, now = tmp_path / "journal.stops.json", StopState(), itertools.count(100, -1)
    monkeypatch.setattr(clock, "utime", lambda: next(now))
    numbers = []
    for step in range(4):
        state = state.stop(FIRST) if step % 2 == 0 else state.release("robot1")
        assert stop_state.save(path, state) == ""
        state = stop_state.load(path)
        numbers.append(newest_order(state.orders, "robot1"))
    assert numbers == [100, 101, 102, 103]
    assert newest_order(state.orders, "robot2") == NO_ORDER
    assert newest_order(state.orders, "robot1/arm") == newest_order(state.orders, "") == 103
    assert state.release("robot1").orders == state.orders, "it was released before: nothing has changed"
    path.write_text("{")
    assert newest_order(stop_state.load(path).orders, "robot2") != NO_ORDER, "perhaps it was stopped"


def test_of_many_robots_the_oldest_orders_count_as_ones_to_all() -> None:
    state = orders_to("robot")
    assert len(state.orders) == 50
    assert NO_ORDER < newest_order(state.orders, "robot3") < newest_order(state.orders, "robot30")
    assert newest_order(state.orders, "") == newest_order(state.orders, "robot59")


@pytest.mark.parametrize("length", [50, 100, 190])
def test_a_heartbeat_carries_the_orders_to_many_robots_of_long_names(length: int) -> None:
    state = orders_to(name := "r" * length)
    assert ORDERS in state_text("bridge", {ORDERS: dict(state.orders)}, ())
    assert len(state.orders) > 10
    assert newest_order(state.orders, "") == newest_order(state.orders, f"{name}59")


def orders_to(name: str) -> StopState:
    """The state after 60 robots of this name and a number were stopped."""
    state = StopState()
    for number in range(60):
        state = state.stop(Stop(robot=f"{name}{number}", utime=number))
    return state


@pytest.mark.virtual_time
async def test_an_order_is_written_by_itself_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, order = StopFile(tmp_path / "journal.stops.json"), StopState().stop(FIRST)
    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_text", full)
        assert "No space left on device" in await file.keep(order, 5.0)
        await asyncio.sleep(10.0)
        assert "No space left on device" in file.lost()[0]
    await until(lambda: file.lost() == [])
    assert file.load() == order
    await file.close()


@pytest.mark.virtual_time
async def test_a_bridge_that_begins_on_a_full_disk_says_that_a_stop_may_be_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = StopFile(tmp_path / "journal.stops.json")
    await file.probe()
    assert file.lost() == []
    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_bytes", full)
        await file.probe()
    (lost,) = file.lost()
    assert lost.startswith("perhaps stops from before the bridge began")
    assert await file.keep(StopState(), 5.0) == ""
    assert file.lost() == [], "whoever has given an order since knows what holds"


def test_an_order_that_comes_while_another_is_written_is_written_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, begun, goes_on, save = (
        tmp_path / "journal.stops.json",
        threading.Event(),
        threading.Event(),
        stop_state.save,
    )
    newest = StopState().stop(FIRST).stop(SECOND)

    def save_slowly(path: Path, state: StopState) -> str:
        begun.set()
        assert goes_on.wait(10.0)
        return save(path, state)

    async def order_twice() -> list[str]:
        file = StopFile(path)
        first = asyncio.create_task(file.keep(StopState().stop(FIRST), 5.0))
        await until(begun.is_set)
        second = asyncio.create_task(file.keep(newest, 5.0))
        await asyncio.sleep(0)
        goes_on.set()
        return list(await asyncio.gather(first, second))

    monkeypatch.setattr(stop_state, "save", save_slowly)
    assert asyncio.run(order_twice()) == ["", ""]
    assert stop_state.load(path) == newest


def test_for_want_of_a_thread_an_order_is_written_later_and_the_log_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    order, start, refused = StopState().stop(FIRST), threading.Thread.start, 0

    def refuse_twice(thread: threading.Thread) -> None:
        nonlocal refused
        refused += 1
        if refused < 3:
            raise RuntimeError("can't start new thread")
        start(thread)

    async def main() -> None:
        file = StopFile(tmp_path / "journal.stops.json")
        assert "no more threads" in await file.keep(order, 5.0)
        await until(lambda: file.lost() == [])
        assert file.load() == order
        await file.close()

    monkeypatch.setattr("dimos_streams.bridge.calls.stops.stop_file._AGAIN_S", 0.0)
    monkeypatch.setattr(threading.Thread, "start", refuse_twice)
    asyncio.run(main())
    assert caplog.text.count("which robots are stopped is not kept") == 1


def test_health_says_that_an_order_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(journal=tmp_path / "journal.db") as bridge:
        with monkeypatch.context() as disk:
            disk.setattr(Path, "write_text", full)
            unsaved = bridge.post("/robots/stop").json()["unsaved"]
            (lost,) = bridge.get("/healthz").json()["lost"]
            assert lost == f"orders to stop and release, at the bridge's end: {unsaved}"
        assert bridge.post("/robots/release").json()["unsaved"] == ""
        assert bridge.get("/healthz").json()["status"] == "ok"


def test_a_bridge_that_begins_without_a_thread_to_look_says_that_a_stop_may_be_lost(tmp_path: Path) -> None:
    file = StopFile(tmp_path / "journal.stops.json")
    with no_threads():
        asyncio.run(file.probe())
    (lost,) = file.lost()
    assert lost.startswith("perhaps stops from before the bridge began")
    assert "no more threads" in lost
