"""What one run of a robot has taken of a hub's commands binds the next one, whose journal is another."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from pathlib import Path

import pytest

from dimos_streams import clock
from dimos_streams.bridge.fleet.command_notes import KEEP_S, CommandNotes
from dimos_streams.bridge.fleet.commands import call_of
from dimos_streams.bridge.fleet.earlier_commands import EarlierCommands, earlier_commands
from dimos_streams.bridge.fleet.run_journals import ROBOT_NOTE
from dimos_streams.common.process.run_owner import OWNER_FILE, RunOwner
from dimos_streams.fleet.commands import Answer, Command
from dimos_streams.fleet.last_order import OrderNote
from tests.bridge.fleet.desk import answer_to, call, desk
from tests.bridge.fleet.fake_hub import FakeHub
from tests.bridge.journals import OpenJournal
from tests.bridge.scene import scene

BODY = call("at_once", value=3)

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("H2")]


async def test_a_call_that_an_earlier_run_may_have_begun_is_not_begun_again(
    tmp_path: Path, opened: OpenJournal
) -> None:
    earlier = _after_killed_run(tmp_path, opened)
    hub = FakeHub()
    async with scene() as made, desk(made, hub, earlier):
        for id, key in enumerate(("killed", "waits", "killed", "waits otherwise"), start=1):
            hub.command(id, "/calls", key=key, body=BODY | {"idempotency_key": key.split()[0]})
            answer = await answer_to(hub, id)
            assert (answer.outcome, answer.status) == ("answered", 409)
            assert "not begun again" in answer.body["detail"]
        hub.command(5, "/calls", key="done", body=BODY | {"idempotency_key": "done"})
        assert (await answer_to(hub, 5)).body == {"call_id": "c1", "waited": "close"}
        assert not await made.broker.calls()
        hub.command(6, "/calls", key="refused", body=BODY | {"idempotency_key": "refused"})
        assert (await answer_to(hub, 6)).status == 201, "nothing had begun"
        hub.command(7, "/calls", key="somebody else's", body=BODY | {"caller": "you", "idempotency_key": "killed"})
        assert (await answer_to(hub, 7)).status == 201


async def test_the_keys_of_an_earlier_run_are_kept_for_an_hour(tmp_path: Path, opened: OpenJournal) -> None:
    notes, earlier = CommandNotes(opened()), _after_killed_run(tmp_path, opened)
    notes.take_over(earlier.calls, earlier.orders)
    await asyncio.sleep(KEEP_S - 1.0)
    assert notes.is_of_earlier_run(_named("killed"))
    await asyncio.sleep(2.0)
    assert not notes.is_of_earlier_run(_named("killed"))


async def test_a_stop_that_an_earlier_run_has_taken_stops_the_next_one(tmp_path: Path, opened: OpenJournal) -> None:
    earlier = _after_killed_run(tmp_path, opened)
    hub = FakeHub()
    async with scene() as made, desk(made, hub, earlier):
        hub.command(1, "/robots/stop", key="stop")
        assert (await answer_to(hub, 1)).status == 200
        assert made.broker.stops.stopped().stops


async def test_a_call_that_was_given_before_a_stop_does_not_begin_in_the_next_run(
    tmp_path: Path, opened: OpenJournal
) -> None:
    earlier = _after_killed_run(tmp_path, opened, stopped=7)
    hub = FakeHub()
    async with scene() as made, desk(made, hub, earlier):
        hub.command(6, "/calls", body=call("follow", description="her", steps=3))
        answer = await answer_to(hub, 6)
        assert (answer.status, answer.body["type"]) == (409, "urn:dimos-streams:problem:call-rejected")
        hub.command(8, "/calls", body=call("at_once", value=3))
        assert (await answer_to(hub, 8)).status == 201


@pytest.mark.parametrize(("robot", "age_s"), [("r2", 0.0), ("r1", KEEP_S + 1.0)])
async def test_what_another_robot_or_an_old_run_has_taken_counts_for_nothing(
    tmp_path: Path, opened: OpenJournal, robot: str, age_s: float
) -> None:
    _after_killed_run(tmp_path, opened)
    await asyncio.sleep(age_s)
    assert not earlier_commands(tmp_path / "2-now" / "journal.sqlite", robot).calls


async def test_a_damaged_journal_hides_no_other_one(
    tmp_path: Path, opened: OpenJournal, caplog: pytest.LogCaptureFixture
) -> None:
    _run_dir(tmp_path / "0-damaged")
    (tmp_path / "0-damaged" / "journal.sqlite").write_bytes(b"x" * 5000)
    assert _after_killed_run(tmp_path, opened).calls
    assert "0-damaged" in caplog.text


async def test_journals_that_nobody_has_written_since_are_not_opened(
    tmp_path: Path, opened: OpenJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the newest ones, of which nobody knows how old they are."""
    assert _after_killed_run(tmp_path, opened).calls
    _age(tmp_path / "1-killed", KEEP_S + 61.0)
    monkeypatch.setattr("dimos_streams.bridge.fleet.earlier_commands._NEWEST", 0)
    monkeypatch.setattr(sqlite3, "connect", None)
    assert not earlier_commands(tmp_path / "2-now" / "journal.sqlite", "r1").calls


async def test_a_clock_that_was_set_ahead_hides_nothing_of_the_run_before(
    tmp_path: Path, opened: OpenJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a robot that learns the time only while it runs."""
    before = _after_killed_run(tmp_path, opened, stopped=7)
    _age(tmp_path / "1-killed", 86_400.0)
    wall = clock.utime
    monkeypatch.setattr(clock, "utime", lambda: wall() + 86_400_000_000)
    assert earlier_commands(tmp_path / "2-now" / "journal.sqlite", "r1") == before


def _age(run: Path, age_s: float) -> None:
    for file in run.glob("journal.sqlite*"):
        os.utime(file, ns=(0, (clock.utime() - int(age_s * 1e6)) * 1000))


def _after_killed_run(runs: Path, opened: OpenJournal, stopped: int = 0) -> EarlierCommands:
    """What the run behind one of robot ``r1`` that was killed finds: a command that was being carried out, one whose
    caller waits, and two that were answered."""
    for name in ("1-killed", "2-now"):
        _run_dir(runs / name)
    journal = opened(runs / "1-killed" / "journal.sqlite")
    journal.note(ROBOT_NOTE, "r1")
    notes = CommandNotes(journal)
    for key in ("killed", "waits", "done", "refused"):
        assert notes.begin(key, _named(key))
    assert notes.begin("stop")
    waits, done = {"call_id": "c2", "waited": "timed_out"}, {"call_id": "c1", "waited": "close"}
    notes.note_answer("waits", Answer(id=2, outcome="answered", status=201, body=waits), settled=False)
    notes.note_answer("done", Answer(id=3, outcome="answered", status=201, body=done), settled=True)
    notes.note_answer("refused", Answer(id=4, outcome="answered", status=409, body={}), settled=False)
    if stopped:
        order = OrderNote(id=stopped, kind="stop", at=clock.steady(), utime=clock.utime())
        journal.note("last order of a hub", order.model_dump_json())
    journal.close()
    return earlier_commands(runs / "2-now" / "journal.sqlite", "r1")


def _named(key: str) -> str:
    """The name of the call with an idempotency key."""
    fields = {
        "id": 1,
        "key": key,
        "stream": "the-one-there-is",
        "expires_at_s": 1.0,
        "asked_by": "me",
        "path": "/calls",
    }
    body = BODY | {"idempotency_key": key}
    return call_of(Command.model_validate({**fields, "role": "operator", "method": "POST", "body": body}))


def _run_dir(path: Path) -> None:
    path.mkdir()
    (path / OWNER_FILE).write_text(RunOwner(directory=path.name).model_dump_json())
