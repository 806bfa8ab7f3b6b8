"""What a hub keeps: the same on each engine."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from dimos_streams import clock
from dimos_streams.bridge.calls.call_pages import PAGE_BYTES, WantedState
from dimos_streams.common.json.writing import json_text
from dimos_streams.errors import UserError
from dimos_streams.hub.fleet_view import FleetRobot
from dimos_streams.hub.http.call_routes import _within
from dimos_streams.hub.storage.engines.engine import Transaction
from dimos_streams.hub.storage.rows import (
    ROW_BYTES,
    Conflicting,
    NotNext,
    Retention,
    Taken,
)
from dimos_streams.hub.storage.storage import HubStorage
from dimos_streams.journal.query import Query, QueryBack
from dimos_streams.tool_stream.event import EventType
from dimos_streams.tool_stream.gateway import CallView
from tests.hub.stored import (
    ALL,
    PARTITION,
    batch,
    clock_owner,
    command,
    due,
    entry,
    gap,
    noise,
    numbered,
    opened,
    seqs,
)


@pytest.fixture
def passed_s(storage: HubStorage, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds, its only item, by which the database's clock is ahead."""
    passed_s, engines = [0.0], clock_owner(storage)
    now = engines.now
    monkeypatch.setattr(engines, "now", lambda db: now(db) + int(passed_s[0] * 1_000_000))
    return passed_s


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_each_offset_is_stored_once_however_often_it_is_sent(storage: HubStorage) -> None:
    assert storage.position("r1", "journal-1") == 0
    assert storage.store([batch(*numbered(1, 3))]) == [Taken(3)]
    assert storage.store([batch(*numbered(1, 3))]) == [Taken(3)], "the same again"
    assert storage.store([batch(*numbered(2, 5)), batch(*numbered(4, 6))]) == [Taken(5), Taken(6)]
    turned_over = entry(6)._replace(body=json_text(dict(reversed(list(entry(6).event.items())))))
    assert storage.store([batch(turned_over)]) == [Taken(6)], "with its members in another order"
    assert storage.position("r1", "journal-1") == 6
    assert seqs(storage) == [1, 2, 3, 4, 5, 6]
    event = storage.read(Query(0), 1, ALL).entries[0].event
    assert (event.robot, event.seq, event.call_id) == ("r1", 1, "c1")


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_what_is_out_of_place_or_contradicts_is_refused_and_told_and_the_others_are_taken(
    storage: HubStorage,
) -> None:
    storage.store([batch(*numbered(1, 3))])
    other = batch(*numbered(900, 901), robot="r2")
    assert storage.store([batch(*numbered(5, 6)), other]) == [NotNext(3), Taken(901)], "a journal begins anywhere"
    answers = storage.store([batch(entry(2), entry(3, "other"), entry(4)), batch(entry(4), journal="journal-2")])
    assert answers == [Conflicting(3), Taken(4)]
    same_batch = storage.store([batch(entry(4, "a")), batch(entry(4, "b"), entry(5))])
    assert same_batch == [Taken(4), Conflicting(4)], "two that come at once"
    assert storage.position("r1", "journal-1") == 4
    assert (seqs(storage, robot="r2"), len(seqs(storage))) == ([4, 5], 7)


@pytest.mark.slow
def test_a_gap_stands_for_offsets_and_contradicts_nothing(storage: HubStorage) -> None:
    assert storage.store([batch(gap(1, 40), entry(41))]) == [Taken(41)]
    assert storage.store([batch(gap(30, 45))]) == [Taken(45)], "trimmed before the acknowledgement came"
    assert storage.store([batch(*numbered(40, 46))]) == [Taken(46)]
    assert [each.type for each in storage.read(Query(0), 10, ALL).entries] == ["gap", "update", "gap", "update"]


@pytest.mark.slow
def test_pages_are_bounded_in_number_bytes_and_search(storage: HubStorage) -> None:
    storage.store([batch(*(entry(offset, "x" * 1000, call=f"c{offset % 3}") for offset in range(1, 31)))])
    assert len(storage.read(Query(0), 5, ALL).entries) == 5
    page = storage.read(Query(0), 10, 3000)
    assert ([each.offset for each in page.entries], page.upto) == ([1, 2], 2)
    assert storage.read(Query(0), 10, 1).upto == 1, "one at least"
    assert seqs(storage, call_id="c1") == list(range(1, 31, 3))
    assert storage.read(Query(0, caller="nobody"), 10, ALL).upto == 30
    storage.store([batch(entry(31, type="progress"))])
    back = storage.read_back(QueryBack(32), 10, 3000)
    assert ([each.offset for each in back.entries], back.since) == ([29, 30], 29)
    assert [each.offset for each in storage.read_back(QueryBack(99, progress=True), 2, ALL).entries] == [30, 31]
    assert storage.read_back(QueryBack(9, robot="r2"), 2, ALL) == ([], 1, 1)


@pytest.mark.slow
def test_a_call_stands_as_if_each_event_had_come_alone(storage: HubStorage) -> None:
    """Whatever a batch has of it, and also where an older journal comes late."""
    random = Random(7)
    types: tuple[EventType, ...] = ("open", "update", "update", "progress", "update", "update", "close")
    for number in range(40):
        call, kept = f"c{number}", [at for at in range(len(types)) if random.random() < 0.7]
        late = [at for at in kept if random.random() < 0.2]
        order = [at for at in kept if at not in late] + late
        said = [
            entry(at + 1, f"text {at}", call=call, type=types[at], arguments={"n": number})._replace(
                first=place, last=place
            )
            for place, at in enumerate(order, start=1)
        ]
        for single in said:
            storage.store([batch(single, robot=f"alone{number}")])
        storage.store([batch(*said, robot=f"batch{number}")])
        found = [
            {**json.loads(row.record), "robot": ""}
            for robot in ("alone", "batch")
            for row in storage.calls.newest(1, robot=f"{robot}{number}", state=None, before=None)
        ]
        assert found[:1] == found[1:], order
        lasting = [at for at in kept if types[at] != "progress"]
        assert [each["text"] for each in found] == [f"text {lasting[-1]}"] * 2 if lasting else not found


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_what_is_old_goes_in_whole_partitions(storage: HubStorage) -> None:
    storage.store([batch(*numbered(1, 170))])
    assert storage.trim(Retention(events=1000)) == (1, 170)
    assert storage.trim(Retention(events=60)) == (101, 170), "so many at least are kept"
    assert seqs(storage) == list(range(101, 171))
    assert storage.read(Query(0), 5, ALL).first == 101
    assert storage.store([batch(*numbered(90, 171))]) == [Taken(171)], "what is gone is not compared"
    assert storage.trim(Retention(days=0)) == (151, 171)
    storage.store([batch(*numbered(172, 220))])
    with storage.engine.transaction() as db:
        db.run("UPDATE fleet SET first_seq = 201")  # by a hub that was killed before it has dropped anything
    assert storage.trim(Retention()) == (201, 220)
    with storage.engine.transaction() as db:
        assert db.rows("SELECT min(seq) FROM events") == [(201,)]


@pytest.mark.feature("H2")
def test_the_oldest_events_go_where_all_of_them_take_too_many_bytes(tmp_path: Path) -> None:
    """Those of the newest take the room of the others, and of the oldest partition not all goes."""
    with opened(f"sqlite:///{tmp_path}/hub.sqlite") as storage:
        assert storage.trim(Retention(megabytes=1)) == (1, 0)
        for first in range(1, 211, 30):
            storage.store([batch(*(entry(at, noise(at), type="progress") for at in range(first, first + 30)))])
            kept = storage.trim(Retention(megabytes=1))
            taken = sum(len(each.body) for each in storage.read(Query(0), 1000, ALL).entries)
            assert taken <= 1_000_000
            assert seqs(storage) == list(range(kept.first, kept.last + 1))
        assert taken > 1_000_000 * 11 // 16, "no more has gone than had to"
        assert kept.first % PARTITION != 1, "not whole partitions"
        assert storage.trim(Retention(megabytes=1)) == kept, "what was deleted takes nothing"


@pytest.mark.feature("H2")
def test_no_more_events_go_than_must_where_the_records_of_calls_take_more_than_they_do(storage: HubStorage) -> None:
    storage.store([batch(*(entry(at, noise(at), call=f"c{at}", type="close") for at in range(1, 301)))])
    kept = storage.trim(Retention(megabytes=4))
    records = storage.calls.newest(1000, robot=None, state=None, before=None)
    taken = sum(len(each.body) for each in storage.read(Query(0), 1000, ALL).entries)
    assert len(records) == kept.last + 1 - kept.first
    assert 4_000_000 // 2 < taken + sum(len(each.record) for each in records) <= 4_000_000


@pytest.mark.slow
def test_numbers_that_were_lost_make_nothing_before_them_old(storage: HubStorage) -> None:
    storage.store([batch(*numbered(1, 90))])
    with storage.engine.transaction() as db:
        db.run("UPDATE fleet SET last_seq = 190")
    storage.store([batch(*numbered(91, 92))])
    assert storage.trim(Retention()) == (1, 192)
    with storage.engine.transaction() as db:
        db.run("UPDATE events SET stored = ? WHERE seq <= 70", clock.KNOWN_FROM_US)
    assert storage.trim(Retention()) == (51, 192)


@pytest.mark.feature("H2")
def test_no_transaction_that_drops_what_is_old_changes_more_than_a_few_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dimos_streams.hub.storage.calls._STEP", 4)
    monkeypatch.setattr("dimos_streams.hub.storage.engines.oldest_rows.STEP", 4)
    lasting = (1, 20, 120)  # the offsets of events of a call that goes on
    ended = [entry(at, call=f"c{at}", type="close") for at in range(1, 121)]
    entries = [entry(each.last, call="lasting") if each.last in lasting else each for each in ended]
    with opened(f"sqlite:///{tmp_path}/hub.sqlite") as storage:
        storage.store([batch(*entries)])
        begin, changes = storage.engine.transaction, list[int]()

        @contextlib.contextmanager
        def counted() -> Iterator[Transaction]:
            with begin() as db:
                ((before,),) = db.rows("SELECT total_changes()")
                yield db
                ((after,),) = db.rows("SELECT total_changes()")
                changes.append(after - before)

        monkeypatch.setattr(storage.engine, "transaction", counted)
        assert storage.trim(Retention(events=60)) == (51, 120)
        kept = [row.call_id for row in storage.calls.newest(200, robot=None, state=None, before=None)]
        assert kept == [*(f"c{at}" for at in range(119, 50, -1)), "lasting"]
        assert (sum(changes), max(changes)) == (1 + 50 + 48, 4)


@pytest.mark.slow
def test_a_call_is_known_for_as_long_as_an_event_of_it(storage: HubStorage) -> None:
    ended, long = entry(1, call="ended", type="close"), entry(2, call="long", type="open")
    storage.store([batch(ended, long, *numbered(3, 160), entry(161, call="long"))])
    assert storage.trim(Retention(events=20)) == (101, 161)
    rows = storage.calls.newest(9, robot=None, state=None, before=None)
    assert sorted(json.loads(row.record)["call_id"] for row in rows) == ["c1", "long"]


@pytest.mark.feature("H2")
def test_a_call_that_goes_on_is_known_when_its_events_are_gone(
    storage: HubStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def known(state: WantedState) -> list[tuple[str, str]]:
        return [(row.robot, row.call_id) for row in storage.calls.newest(9, robot=None, state=state, before=None)]

    begun = [entry(at, "well", call=f"c{at}", type="open") for at in range(1, 5)]
    storage.store([batch(*begun, *(entry(at, call="c1", type="progress") for at in range(5, 160)))])
    storage.store([batch(begun[0], robot="r2"), batch(entry(160, call="c4", type="close"))])
    assert storage.trim(Retention(days=0)) == (151, 161)
    assert (known("closed"), known("open")) == (
        [("r1", "c4")],
        [("r2", "c1"), ("r1", "c3"), ("r1", "c2"), ("r1", "c1")],
    )
    size = len(storage.calls.find("c3")[0].record) + ROW_BYTES
    monkeypatch.setattr("dimos_streams.hub.storage.calls._OPEN_BYTES", 5 * size // 2)
    storage.store([batch(*(entry(at, call="c2" if at == 161 else "c5", type="close") for at in range(161, 200)))])
    assert storage.trim(Retention(days=0)) == (201, 200)
    assert (known("closed"), known("open")) == ([], [("r2", "c1"), ("r1", "c3"), ("r1", "c1")])
    monkeypatch.setattr("dimos_streams.hub.storage.calls._OPEN_BYTES", 3 * size // 2)
    storage.trim(Retention())
    assert known("open") == [("r2", "c1"), ("r1", "c3")], "of each robot those that began last"
    for robot in ("r1", "r2"):
        storage.robots.add(robot)
    storage.calls.drop_before(201, 2 * size + 20)
    assert known("open") == [("r2", "c1"), ("r1", "c3")]
    storage.calls.drop_before(201, 2 * size - 20)
    assert known("open") == [], "all robots share what the history's bound leaves them"


def test_an_open_call_that_has_no_room_takes_none_from_an_older_one(storage: HubStorage) -> None:
    small, large = entry(1, "well", call="small", type="open"), entry(2, noise(2), call="large", type="update")
    storage.store([batch(small, large)])
    room = len(storage.calls.find("small")[0].record) + ROW_BYTES
    assert len(storage.calls.find("large")[0].record) > room
    storage.calls.drop_before(3, room + 20)
    assert [row.call_id for row in storage.calls.newest(9, robot=None, state="open", before=None)] == ["small"]


@pytest.mark.slow
def test_what_was_stored_when_the_hub_did_not_know_the_time_is_not_old(storage: HubStorage) -> None:
    storage.store([batch(*numbered(1, 120))])
    with storage.engine.transaction() as db:
        for table in ("events", "journals"):
            db.run(f"UPDATE {table} SET stored = 5000000")
    assert storage.trim(Retention()) == (1, 120)
    assert storage.position("r1", "journal-1") == 120, "what it has it takes no second time"
    assert storage.store([batch(*numbered(1, 121))]) == [Taken(121)]
    assert seqs(storage) == list(range(1, 122))
    with storage.engine.transaction() as db:
        db.run("UPDATE events SET stored = ? WHERE seq > 100", clock.KNOWN_FROM_US)
    assert storage.trim(Retention()) == (101, 121), "they are older than what is too old"


@pytest.mark.slow
def test_of_each_robot_the_journals_that_shipped_last_are_known(
    storage: HubStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dimos_streams.hub.storage.history_bounds.JOURNALS", 2)
    for number in (1, 2, 3):
        storage.store([batch(entry(1), journal=f"journal-{number}")])
    storage.store([batch(entry(1), robot="r2"), batch(entry(2), journal="journal-1")])
    storage.trim(Retention())
    known = [storage.position("r1", f"journal-{number}") for number in (1, 2, 3)]
    assert (known, storage.position("r2", "journal-1")) == ([2, 0, 1], 1)


@pytest.mark.slow
def test_the_journal_that_a_robot_writes_is_known_however_long_it_had_nothing_new(storage: HubStorage) -> None:
    storage.store([batch(*numbered(1, 3), journal="journal-1"), batch(*numbered(1, 3), journal="journal-2")])
    storage.robots.add("r1")
    storage.robots.report("r1", version="1", journal="journal-2", report="{}", skills=None)
    with storage.engine.transaction() as db:
        db.run("UPDATE journals SET stored = ?", clock.KNOWN_FROM_US)
    storage.trim(Retention())
    assert [storage.position("r1", f"journal-{number}") for number in (1, 2)] == [0, 3]


@pytest.mark.slow
def test_a_journal_is_known_for_twice_as_long_as_its_events(storage: HubStorage) -> None:
    storage.store([batch(entry(1))])
    with storage.engine.transaction() as db:
        db.run("UPDATE journals SET stored = ?", db.date() - 150 * 86_400_000_000)
    storage.trim(Retention(days=100.0))
    assert storage.robots.has_shipped("r1")
    storage.trim(Retention(days=70.0))
    assert not storage.robots.has_shipped("r1")


@pytest.mark.slow
def test_hubs_that_write_at_once_leave_no_number_out_and_show_none_before_those_below(database_url: str) -> None:
    with opened(database_url) as storage, ThreadPoolExecutor(4) as pool:

        def write(robot: int) -> None:
            for offset in range(1, 21):
                storage.store([batch(entry(offset), robot=f"r{robot}")])

        writing = [pool.submit(write, robot) for robot in range(3)]
        seen: list[int] = []
        while len(seen) < 60:
            seen += [each.offset for each in storage.read(Query(len(seen)), 100, ALL).entries]
            assert seen == list(range(1, len(seen) + 1))
        for each in writing:
            each.result()


@pytest.mark.slow
def test_calls_are_folded_from_their_events(storage: HubStorage) -> None:
    opened = entry(1, type="open", arguments={"a": 1}, parent="", resources=["base"], on_loss="continue")
    storage.store([batch(opened, entry(2, "on it"), entry(3, "10 %", type="progress"))])
    storage.store([batch(entry(1, call="c1", type="open"), robot="r2"), batch(entry(2, call="c2"), robot="r2")])
    (first, other) = storage.calls.find("c1")
    assert {first.robot, other.robot} == {"r1", "r2"}
    storage.store([batch(entry(4, "done", type="close", outcome="completed", result=5))])
    row = next(each for each in storage.calls.find("c1") if each.robot == "r1")
    assert row.closed
    for part in ('"answer":"on it"', '"result":5', '"resources":["base"]', '"state":"closed"', '"text":"done"'):
        assert part in row.record
    newest = storage.calls.newest(10, robot=None, state="open", before=None)
    assert [(each.robot, each.call_id) for each in newest] == [("r2", "c2"), ("r2", "c1")]
    assert storage.calls.newest(1, robot="r1", state=None, before=newest[1].first_seq)[0].call_id == "c1"


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_what_has_no_room_on_a_page_is_not_fetched(tmp_path: Path) -> None:
    """Many readers of large pages would need as many times the memory."""
    with opened(f"sqlite:///{tmp_path}/hub.sqlite") as storage:
        large = {"text": "x" * 40_000}
        storage.store([batch(*(entry(n, call=f"c{n}", type="open", arguments=large) for n in range(1, 101)))])
        tracemalloc.start()
        try:
            for robot in (None, "r1"):
                rows = storage.calls.newest(100, robot=robot, state=None, before=None, max_bytes=100_000)
                assert [row.call_id for row in rows] == ["c100", "c99", "c98"], "up to the first that has no room"
            assert [each.offset for each in storage.read(Query(0), 100, 100_000).entries] == [1, 2]
            assert [each.offset for each in storage.read_back(QueryBack(99), 100, 100_000).entries] == [97, 98]
            assert tracemalloc.get_traced_memory()[1] < 1_000_000, "all would have 4 MB"
        finally:
            tracemalloc.stop()


def test_the_room_of_a_page_of_calls_is_in_bytes(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/hub.sqlite") as storage:
        arrows = {"text": "→" * 1_000}
        storage.store([batch(*(entry(n, call=f"c{n}", type="open", arguments=arrows) for n in range(1, 5)))])
        rows = storage.calls.newest(10, robot=None, state=None, before=None, max_bytes=5_000)
        assert [row.call_id for row in rows] == ["c4", "c3"]
        assert _within(rows * 100) == (rows * 100)[: PAGE_BYTES // len(rows[0].record.encode())]


def test_a_file_that_sqlite_removes_meanwhile_has_no_size(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/hub.sqlite") as storage:
        before = storage.engine.size()
        (tmp_path / "hub.sqlite-gone").symlink_to("nowhere")  # it is listed, and is not there
        assert storage.engine.size() == before


@pytest.mark.slow
def test_pages_end_where_they_are_full_on_each_engine(storage: HubStorage) -> None:
    large = {"text": "x" * 1_000}
    storage.store([batch(*(entry(n, call=f"c{n}", type="open", arguments=large) for n in range(1, 301)))])
    for robot in (None, "r1"):
        rows = storage.calls.newest(300, robot=robot, state="open", before=300, max_bytes=4_000)
        assert [row.call_id for row in rows] == ["c299", "c298", "c297", "c296"][: len(rows)]
        assert sum(len(row.record) for row in rows[:-1]) <= 4_000 < sum(len(row.record) for row in rows)
        assert len(storage.calls.newest(250, robot=robot, state=None, before=None)) == 250
    assert len(storage.read(Query(0), 250, ALL).entries) == 250
    found = storage.read(Query(0), 250, 4_000)
    assert [each.offset for each in found.entries] == list(range(1, found.upto + 1))


@pytest.mark.slow
def test_what_an_older_journal_says_late_is_not_how_a_call_stands(storage: HubStorage) -> None:
    storage.store([batch(entry(3, "on it", arguments={"no": 1}), entry(4, "done", type="close", outcome="failed"))])
    (row,) = storage.calls.find("c1")
    call = CallView.model_validate_json(row.record)
    assert (call.arguments, call.answer, call.text, call.outcome) == ({}, "on it", "done", "failed")
    late = entry(1, type="open", arguments={"a": 1}, parent="p", resources=["base"], on_loss="continue")
    storage.store([batch(late, entry(2, "it begins"), journal="journal-0")])
    (row,) = storage.calls.find("c1")
    told = {"arguments": {"a": 1}, "parent": "p", "resources": ("base",), "on_loss": "continue"}
    assert CallView.model_validate_json(row.record) == call.model_copy(update=told)


@pytest.mark.slow
def test_a_call_begins_with_the_gap_that_its_bridge_got_in_the_place_of_its_open(storage: HubStorage) -> None:
    lost = entry(2, "events 1 to 2 of this call are lost", type="gap", from_seq=1, to_seq=2)
    storage.store([batch(entry(1, call="c0"), lost, entry(3, "on it"))])
    (row,) = storage.calls.find("c1")
    call = CallView.model_validate_json(row.record)
    assert (row.first_seq, call.state, call.answer, call.text) == (2, "open", "on it", "on it")


@pytest.mark.slow
def test_robots_have_tokens_of_their_own(storage: HubStorage) -> None:
    token = storage.robots.add("r1")
    assert (storage.robots.of_token(token), storage.robots.of_token("else")) == ("r1", "")
    with pytest.raises(UserError, match="--new-token"):
        storage.robots.add("r1")
    newer = storage.robots.add("r1", again=True)
    assert (storage.robots.of_token(token), storage.robots.of_token(newer)) == ("", "r1")
    storage.robots.hear({"r1": 86_400_000_000})
    assert not storage.robots.report("r1", version="1", journal="j", report="{}", skills=None)
    assert storage.robots.report("r1", version="1", journal="j", report="{}", skills="[]")
    storage.robots.connect("r1", "stream-1", "process", 60)
    storage.robots.connect("r1", "stream-2", "process", 60)
    assert storage.robots.keep({"r1": "stream-1"}, 60) == {"r1"}, "another stream has followed"
    (row,) = storage.robots.all()
    assert (row.connected, row.clock_us, row.version) == (True, 86_400_000_000, "1")
    assert FleetRobot(dataclasses.replace(row, report="")).view(row.added).notes == (
        "its clock is 86400 s ahead of the hub's: times of its events are off by as much",
    )
    skill = {"name": "go", "description": "", "parameters": {}, "module": "m", "available": True}
    strange = [{**skill, "name": "go\napproved"}, {**skill, "name": "stay", "module": "m\u202e"}, skill]
    assert list(FleetRobot(dataclasses.replace(row, skills=json.dumps(strange))).skills) == ["go"]
    storage.robots.add("r1", again=True)
    assert storage.robots.keep({"r1": "stream-2"}, 60) == {"r1"}, "whoever has the old token holds it"
    assert [each.connected for each in storage.robots.all()] == [False]
    assert isinstance(storage.commands.give(command()), int)
    assert storage.commands.due({"r1": "stream-2"}) == [], "nor gets it a command until somebody has noticed"
    assert len(due(storage, "stream-3")) == 1
    storage.robots.remove("r1")
    with pytest.raises(UserError, match="no robot of this fleet is called 'r1'"):
        storage.robots.remove("r1")


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_two_processes_that_take_turns_as_one_robot_are_two_robots_and_a_restart_or_a_weak_link_is_not(
    storage: HubStorage, passed_s: list[float]
) -> None:
    storage.robots.add("r1")

    def turn(process: str, after_s: float = 1.0) -> bool:
        passed_s[0] += after_s
        return storage.robots.connect("r1", f"stream {passed_s[0]}", process, 12)

    assert [turn(each) for each in ("a", "a", "b", "b", "c", "d", "d")] == [False] * 7
    assert not turn("c", 61.0), "whatever was there so long ago"
    assert [turn("d"), turn("c"), turn("c", 59.0), turn("c", 2.0)] == [True, True, True, False]
    assert [turn("d"), turn("c")] == [False, True]
    assert [row.doubled for row in storage.robots.all()] == [True]
    storage.robots.add("r1", again=True)
    assert [row.doubled for row in storage.robots.all()] == [False], "only one of them has the new token"
    assert not turn("c")


@pytest.mark.slow
def test_the_end_of_an_older_stream_is_not_that_of_its_robots_newest(storage: HubStorage) -> None:
    storage.robots.add("r1")
    for stream in ("first", "second"):
        storage.robots.connect("r1", stream, "process", 60)
    storage.robots.disconnect("r1", "first")
    assert [row.connected for row in storage.robots.all()] == [True]
    storage.robots.disconnect("r1", "second")
    assert [row.connected for row in storage.robots.all()] == [False]
    assert storage.robots.keep({"r1": "second"}, 60) == {"r1"}, "another thread had begun to note that it goes on"
    assert [row.connected for row in storage.robots.all()] == [False]


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_of_two_robots_with_one_name_none_gets_a_call_and_each_what_stops_it(
    storage: HubStorage, passed_s: list[float]
) -> None:
    storage.robots.add("r1")

    def handed(process: str, stream: str) -> list[str]:
        storage.robots.connect("r1", stream, process, 60)
        return [each.key for each in storage.commands.due({"r1": stream})]

    storage.commands.give(command("call"))
    assert handed("a", "1") == ["call"]
    stop = storage.commands.give(command("stop", path="/robots/stop"))
    assert isinstance(stop, int)
    assert handed("a", "2") == ["call", "stop"], "the link was away"
    assert handed("b", "3") == ["stop"], "the other one may be at it"
    passed_s[0] = 3.0
    assert handed("b", "3") == ["call"], "it has restarted"
    assert not storage.commands.states([stop])[stop].doubled
    assert handed("a", "4") == ["stop"]
    passed_s[0] = 10.0
    assert handed("a", "5") == ["stop"], "for as long as there are two"
    assert storage.commands.states([stop])[stop].doubled
    refused = storage.commands.give(command("other"))
    assert refused == "two robots call themselves 'r1': give each a name and token of its own"
    assert isinstance(storage.commands.give(command("release", path="/robots/release")), int)


def test_a_robot_that_is_removed_leaves_its_ended_calls_as_they_ended(storage: HubStorage) -> None:
    storage.robots.add("r1")
    begun = [entry(offset, call=f"c{offset}", type="open") for offset in (1, 2)]
    storage.store([batch(*begun, entry(3, "there", call="c1", type="close", outcome="completed"))])
    storage.robots.remove("r1")
    records = (storage.calls.find(call)[0].record for call in ("c1", "c2"))
    ended, lost = map(CallView.model_validate_json, records)
    assert (ended.state, ended.outcome, ended.text, ended.closed_utime) == ("closed", "completed", "there", 3)
    assert (lost.state, lost.outcome) == ("closed", "lost")
    assert lost.closed_utime is not None
    assert "removed from the fleet" in lost.text
