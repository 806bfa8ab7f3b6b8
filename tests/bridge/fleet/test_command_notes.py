"""The notes of a hub's commands: kept for as long as somebody may ask again, and no longer."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams import clock
from dimos_streams.bridge.fleet import command_notes
from dimos_streams.bridge.fleet.command_notes import KEEP_S, CommandNote, CommandNotes
from dimos_streams.fleet.commands import Answer
from tests.bridge.journals import OpenJournal

pytestmark = [pytest.mark.virtual_time, pytest.mark.feature("H2")]


async def test_the_newest_answers_have_room_whatever_older_ones_took(
    opened: OpenJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_notes, "_MAX_BYTES", 5000)
    notes = CommandNotes(opened())
    said = {id: Answer(id=id, outcome="answered", status=200, body="x" * 2000) for id in (1, 2, 3)}
    for id, answer in said.items():
        assert notes.begin(f"k{id}")
        assert notes.note_answer(f"k{id}", answer, settled=True) is answer
        notes.note_delivered(f"k{id}", id)
    kept = [notes.answer_to(f"k{id}", 9) for id in said]
    assert [answer and answer.status for answer in kept] == [410, 200, 200]


async def test_an_answer_that_the_hub_has_not_yet_makes_room_for_no_other(
    opened: OpenJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_notes, "_MAX_BYTES", 5000)
    notes = CommandNotes(opened())
    for id in (1, 2, 3):
        assert notes.begin(f"k{id}")
        notes.note_answer(f"k{id}", Answer(id=id, outcome="answered", status=200, body="x" * 2000), settled=True)
    assert [(key, answer.status) for key, answer in notes.owed()] == [("k1", 200), ("k2", 200), ("k3", 410)]


async def test_orders_to_stop_take_the_place_of_the_oldest_and_not_of_more(
    opened: OpenJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_notes, "MAX_NOTES", 2)
    notes = CommandNotes(opened())
    for id in (1, 2, 3):
        assert notes.begin(f"k{id}", lane="safety")
        notes.note_answer(f"k{id}", Answer(id=id, outcome="answered", status=200, body={}), settled=True)
    assert [notes.get(f"k{id}") is not None for id in (1, 2, 3)] == [False, True, True]


async def test_an_answer_that_is_owed_is_not_forgotten_however_old_it_is(opened: OpenJournal) -> None:
    journal = opened()
    notes = CommandNotes(journal)
    assert notes.begin("k1")
    notes.note_answer("k1", Answer(id=1, outcome="answered", status=200, body={}), settled=True)
    await asyncio.sleep(KEEP_S + 400.0)
    assert notes.begin("k2")
    assert [(key, answer.id) for key, answer in notes.owed()] == [("k1", 1)]
    assert set(journal.notes("command/")) == {"command/k1", "command/k2"}
    notes.note_delivered("k1", 1)
    assert notes.begin("k3")
    assert notes.get("k1") is None


async def test_a_command_that_was_carried_out_while_the_machine_slept_is_answered(opened: OpenJournal) -> None:
    notes = CommandNotes(opened())
    assert notes.begin("k1")
    await asyncio.sleep(KEEP_S + 400.0)
    assert notes.begin("k2")
    notes.note_answer("k1", Answer(id=1, outcome="answered", status=200, body={}), settled=True)
    assert [(key, answer.id) for key, answer in notes.owed()] == [("k1", 1)]


async def test_a_note_of_a_later_time_does_not_keep_older_ones(opened: OpenJournal) -> None:
    journal = opened()
    journal.note("command/ahead", CommandNote(utime=clock.utime() + int(1e12)).model_dump_json())
    notes = CommandNotes(journal)
    notes.restore()
    assert notes.begin("old")
    await asyncio.sleep(KEEP_S + 400.0)
    assert notes.begin("new")
    assert set(journal.notes("command/")) == {"command/ahead", "command/new"}


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_clock_that_is_set_ahead_makes_no_command_forgotten(
    restarted: bool, opened: OpenJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = opened()
    notes = CommandNotes(journal)
    assert notes.begin("k1")
    ahead = clock.utime() + int(2 * KEEP_S * 1e6)
    monkeypatch.setattr(clock, "utime", lambda: ahead)
    if restarted:
        monkeypatch.setattr(clock, "steady", lambda: clock.monotonic() + 1e6)  # as on another boot
        notes = CommandNotes(journal)
        notes.restore()
    assert notes.begin("k2")
    assert notes.get("k1") is not None
    await asyncio.sleep(KEEP_S + 1)
    assert notes.begin("k3")
    assert notes.get("k1") is None
