"""Robots ship to a hub over HTTP, and readers read there."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
import requests

from dimos_streams.errors import UserError
from dimos_streams.fleet.batches import encoded_event
from dimos_streams.fleet.protocol import MAX_BATCH_BYTES
from dimos_streams.hub import process
from dimos_streams.hub.storage.engines.sqlite import SqliteEngine
from dimos_streams.hub.storage.rows import Retention, StorageUnavailableError, Taken
from dimos_streams.hub.storage.storage import PARTITION, HubStorage, open_engine
from tests.helpers import fill, wait_for
from tests.hub.serving import Robot, added, event, gap, served_hub
from tests.hub.stored import batch, command, numbered, opened
from tests.problems import problem


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_events_of_robots_come_once_and_in_order_of_each_to_whoever_reads_at_the_hub(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    tokens = added(database, "r1", "r2")
    one, two = Robot("r1", tokens["r1"]), Robot("r2", tokens["r2"])
    with served_hub(database) as hub:
        assert one.ship_events(hub, 1, 3).json()["acknowledged"] == 3
        assert two.ship(hub, gap(1, 900), encoded_event(901, event(901, call_id="x"))).json()["acknowledged"] == 901
        assert one.ship_events(hub, 2, 5).json()["acknowledged"] == 5, "sent again, and more"
        assert one.position(hub).json()["acknowledged"] == 5
        found = hub.events(7)
        assert [id for id, _ in found] == [1, 2, 3, 4, 5, 6, 7]
        assert [each["seq"] for _, each in found if each["robot"] == "r1"] == [1, 2, 3, 4, 5]
        trimmed = found[3][1]
        assert (trimmed["type"], trimmed["robot"]) == ("gap", "r2")
        assert trimmed["data"] == {"from_offset": 1, "to_offset": 900}
    with served_hub(database) as hub:  # another process would find the same
        assert [id for id, _ in hub.events(2, "", **{"Last-Event-ID": "5"})] == [6, 7]
        assert [id for id, _ in hub.events(2, "?from=1&robot=r2")] == [4, 5]
        assert [id for id, _ in hub.events(1, "?from=1&call=x")] == [5]
        problem(hub.get("/tool_streams?robot=r3"), 404, "unknown-robot")
        page = hub.get("/events?limit=4")
        assert [entry["offset"] for entry in page.json()] == [4, 5, 6, 7]
        assert [entry["event"]["robot"] for entry in page.json()] == ["r2", "r2", "r1", "r1"]
        older = hub.get(page.links["next"]["url"])
        assert ([entry["offset"] for entry in older.json()], older.links) == ([1, 2, 3], {})
        assert [entry["offset"] for entry in hub.get("/events?robot=r2&before=5").json()] == [4]
        assert [entry["offset"] for entry in hub.get("/events?call=x").json()] == [5]
        problem(hub.get("/events?robot=r3"), 404, "unknown-robot")
        problem(hub.get("/calls?robot=r3"), 404, "unknown-robot")
        problem(hub.get("/calls/c1?robot=r3"), 404, "unknown-robot")
        reading = threading.Thread(target=lambda: live.extend(hub.events(1, "?from=8")))
        live: list[Any] = []
        reading.start()
        one.ship_events(hub, 6, 6)
        reading.join(20)
        assert [id for id, _ in live] == [8]
        assert [call["call_id"] for call in hub.get("/calls?robot=r2").json()] == ["x"]


@pytest.mark.feature("H2")
def test_what_a_removed_robot_has_shipped_is_read_by_its_name(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub:
        robot.ship_events(hub, 1, 3)
        storage = HubStorage(open_engine(database))
        storage.robots.remove("r1")
        storage.close()
        wait_for(lambda: hub.get("/robots").json() == [], 5.0, lambda: "the robot is listed still")
        assert [id for id, _ in hub.events(3, "?from=1&robot=r1")] == [1, 2, 3]
        assert [entry["offset"] for entry in hub.get("/events?robot=r1").json()] == [1, 2, 3]
        assert hub.get("/calls?robot=r1").json() != []
        problem(hub.get("/calls?robot=r3"), 404, "unknown-robot")
        problem(hub.post("/calls", {"skill": "move", "robot": "r1"}), 404, "unknown-robot")


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_what_can_not_be_stored_is_refused_with_what_to_do_and_nothing_is_lost(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    tokens = added(database, "r1", "r2")
    robot = Robot("r1", tokens["r1"])
    with served_hub(database) as hub:
        robot.ship_events(hub, 1, 3)
        assert problem(robot.ship_events(hub, 5, 6), 409, "fleet-position")["acknowledged"] == 3
        other = problem(robot.ship(hub, encoded_event(3, event(3, "else"))), 409, "fleet-conflict")
        assert (other["offset"], "id of its own" in other["detail"]) == (3, True)
        bad = problem(robot.ship(hub, encoded_event(4, event(4)), encoded_event(5, b'{"x":1}')), 422, "fleet-entry")
        assert (bad["offset"], "no 'x'" in bad["detail"]) == (5, True)
        no_call = problem(robot.ship(hub, encoded_event(4, event(4, call_id="x y\n"))), 422, "fleet-entry")
        assert "call_id 'x y\\n' can be no call's" in no_call["detail"]
        neither = problem(robot.ship(hub, b'{"offset":4,"evnt":{}}'), 422, "bad-request")
        assert neither["detail"].endswith(
            ": entries.0: it is neither an event ('offset', 'event') nor a gap ('offset', 'to_offset', 'gap')"
        )
        cut = problem(robot.ship(hub, b'{"offset":4,"to_offset":5}'), 422, "bad-request")
        assert cut["detail"].endswith(": entries.0.gap.gap: it is missing")
        newer = problem(robot.ship(hub, encoded_event(4, event(4)), protocol=2), 409, "fleet-version")
        assert "speaks version 2 of the protocol" in newer["detail"]
        problem(robot.ship(hub, encoded_event(4, event(4)), encoded_event(6, event(6))), 422, "bad-request")
        for offset in (b"true", b'"4"', b"4.0"):
            odd = b'{"offset":%b,"event":%b}' % (offset, event(4))
            assert "offset" in problem(robot.ship(hub, odd), 422, "bad-request")["detail"]
        large = problem(robot.ship(hub, encoded_event(4, event(4, "x" * MAX_BATCH_BYTES))), 413, "too-large")
        assert "one may have 196608: send less at once" in large["detail"]
        foreign = problem(Robot("r1", tokens["r2"]).position(hub), 403, "foreign-robot")
        assert foreign["detail"] == "this token is robot 'r2''s, not 'r1''s"
        twice = problem(Robot("r%2531", tokens["r1"]).position(hub), 403, "foreign-robot")
        assert twice["detail"] == "this token is robot 'r1''s, not 'r%31''s", "a path is decoded once"
        problem(Robot("r1", "dsr_nobody").ship_events(hub, 4, 5), 403, "foreign-robot")
        problem(requests.get(robot.path(hub, "position"), timeout=10), 401, "token-needed")
        assert robot.position(hub).json()["acknowledged"] == 3
        assert robot.ship(hub, encoded_event(4, event(4, "\0 \ud83d")), gap(5, 5)).json()["acknowledged"] == 5


@pytest.mark.slow
def test_operators_and_robots_have_tokens_of_their_own(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database, token="operators-token") as hub:
        assert robot.ship_events(hub, 1, 1).status_code == 200
        problem(hub.get("/tool_streams", headers=robot.headers), 401, "token-needed")
        refused = problem(hub.get("/robots"), 401, "token-needed")
        assert refused["detail"] == "send the operators' token as 'Authorization: Bearer ...'"
        operator = {"Authorization": "Bearer operators-token"}
        assert [each["name"] for each in hub.get("/robots", headers=operator).json()] == ["r1"]
        problem(requests.get(robot.path(hub, "position"), headers=operator, timeout=10), 403, "foreign-robot")
        assert hub.get("/").status_code == hub.get("/dashboard/hub.js").status_code == 200, "the page has no secret"
        problem(hub.get("/healthz", headers={"Host": "evil.example"}), 403, "foreign-host")
        problem(
            hub.post("/robots/stop", headers={"Origin": "http://evil.example", **operator}), 403, "foreign-origin"
        )


@pytest.mark.slow
def test_what_lies_before_a_journals_first_batch_is_not_stored(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub:
        assert robot.ship_events(hub, 100, 102).json()["acknowledged"] == 102
        assert robot.ship_events(hub, 50, 50).json()["acknowledged"] == 102
        assert robot.position(hub).json()["acknowledged"] == 102
        assert "dimos_streams_hub_last_offset 3.0" in hub.get("/metrics").text
        assert len(hub.events(3)) == 3


@pytest.mark.slow
def test_a_robot_says_how_it_is(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub:
        assert robot.report(hub, skills=None).json()["wants_skills"]
        assert not robot.report(hub, "move", last_offset=7, notes=["journal in memory"]).json()["wants_skills"]
        robot.ship_events(hub, 1, 3)
        (skill,) = hub.get("/skills").json()
        assert (skill["name"], skill["robot"], skill["available"]) == ("r1_move", "r1", False), "it is not connected"
        (view,) = hub.get("/robots").json()
        assert (view["status"], view["to_come"], view["connected"]) == ("unreachable", 4, False)
        assert "dimos_streams_hub_last_offset 3.0" in hub.get("/metrics").text


def test_a_second_hub_on_a_file_and_a_taken_port_are_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    second = SqliteEngine(tmp_path / "hub.sqlite", partition=PARTITION)
    with served_hub(database):
        with monkeypatch.context() as patch:
            patch.setattr(process, "open_engine", lambda url: second)
            with pytest.raises(UserError, match="another hub serves from"), served_hub(database):
                pass
        assert not second._connections
        with pytest.raises(UserError, match="needs a token for operators"), served_hub(database, host="0.0.0.0"):
            pass


@pytest.mark.feature("H2")
def test_what_is_too_much_goes_while_it_comes(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database, retention=Retention(megabytes=1)) as hub:
        for first in range(1, 31, 3):
            long = [encoded_event(n, event(n, "x" * 50_000)) for n in range(first, first + 3)]
            assert robot.ship(hub, *long).status_code == 200
        with contextlib.closing(sqlite3.connect(tmp_path / "hub.sqlite")) as db:
            # Looked at every minute it would not be noticed in this time.
            wait_for(lambda: db.execute("SELECT first_seq FROM fleet").fetchone() > (1,), 30.0)


def test_events_leave_the_last_of_a_disk_to_orders(small_disk: Path) -> None:
    with opened(f"sqlite:///{small_disk}/hub.sqlite") as storage:
        storage.store([batch(*numbered(1, 2))])
        filler = fill(small_disk)
        with filler.open("r+b") as file:
            file.truncate(filler.stat().st_size - 900_000)
        with pytest.raises(StorageUnavailableError, match=r"is full but for \d+ kB: the last 1048 are for orders"):
            storage.store([batch(*numbered(3, 4))])
        assert isinstance(storage.commands.give(command(path="/robots/stop")), int)
        filler.unlink()
        assert storage.store([batch(*numbered(3, 4))]) == [Taken(4)]


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_a_full_disk_costs_robots_nothing(tmp_path: Path, small_disk: Path) -> None:
    """What can't be stored is not acknowledged, and is taken when there is room again."""
    database = f"sqlite:///{small_disk}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub:
        robot.ship_events(hub, 1, 1)
        filler = fill(small_disk)
        long = [encoded_event(n, event(n, "x" * 30_000)) for n in range(2, 7)]
        for _ in range(5):
            refused = robot.ship(hub, *long)
            if refused.status_code != 200:
                break
        assert "full" in problem(refused, 503, "hub-unavailable")["detail"]
        assert refused.headers["Retry-After"]
        assert hub.get("/healthz").json()["status"] == "degraded"
        filler.unlink()
        assert robot.ship(hub, *long).json()["acknowledged"] == 6
        assert [each["seq"] for _, each in hub.events(6)] == [1, 2, 3, 4, 5, 6]


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_a_hub_that_can_note_nothing_says_so_also_if_no_events_come(tmp_path: Path, small_disk: Path) -> None:
    """What it can't note is no order that it could give."""
    database = f"sqlite:///{small_disk}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub:
        assert robot.report(hub, "move").status_code == 200
        filler = fill(small_disk)
        for number in range(20):
            refused = robot.report(hub, *(f"move_{number}_{each}" for each in range(900)))
            if refused.status_code != 200:
                break
        assert "full" in problem(refused, 503, "hub-unavailable")["detail"]
        health = hub.get("/healthz").json()
        assert (health["status"], "full" in health["database"]) == ("degraded", True)
        assert "dimos_streams_hub_ok 0.0" in hub.get("/metrics").text
        filler.unlink()
        # Nobody but the hub writes anything.
        wait_for(lambda: hub.get("/healthz").json()["status"] == "ok", 30.0)


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_two_hubs_on_one_database_have_one_sequence_and_a_database_that_is_gone_costs_nothing(
    postgres_url: str, postgres_server: str
) -> None:
    import psycopg

    tokens = added(postgres_url, "r1", "r2")
    one, two = Robot("r1", tokens["r1"]), Robot("r2", tokens["r2"])
    name = postgres_url.rpartition("/")[2]
    with served_hub(postgres_url) as left, served_hub(postgres_url) as right:
        one.ship_events(left, 1, 2)
        two.ship_events(right, 1, 2)
        one.ship_events(right, 2, 3)
        assert left.events(5) == right.events(5)
        with psycopg.connect(f"{postgres_server}/postgres", autocommit=True) as db:
            db.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
            refused = problem(one.ship_events(left, 4, 6), 503, "hub-unavailable")
            assert "the hub's database postgresql://127.0.0.1" in refused["detail"]
            db.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        acknowledged = 3
        while acknowledged < 6:
            response = one.ship_events(left, 4, 6)
            acknowledged = response.json().get("acknowledged", 3)
        assert [each["seq"] for _, each in right.events(4, "?from=1&robot=r1")] == [1, 2, 3, 4]
        assert len(right.events(8)) == 8
    with pytest.raises(StorageUnavailableError, match="does not exist"), served_hub(f"{postgres_server}/nowhere"):
        pass
