"""Loops of calls are noticed, and nothing else is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dimos_streams.agent.policies.repetition import Action, Alarm, RepetitionGuard, RepetitionSettings

Batch = list[tuple[str, dict[str, Any]]]


def one(name: str, **arguments: Any) -> Batch:
    return [(name, arguments)]


def alarms(batches: Sequence[Batch], exempt: frozenset[str] = frozenset(), **settings: Any) -> list[Alarm | None]:
    guard = RepetitionGuard(RepetitionSettings(**settings))
    return [guard.observe(batch, exempt) for batch in batches]


def kinds(found: Sequence[Alarm | None]) -> dict[int, Action]:
    """The alarms by the number of their batch, counted from 1."""
    return {number: alarm.action for number, alarm in enumerate(found, 1) if alarm is not None}


def test_identical_batches_at_three_six_nine() -> None:
    batches: list[Batch] = [
        [("move", {"a": 1, "b": 2}), ("look", {})],
        [("look", {}), ("move", {"b": 2.0, "a": 1})],
    ] * 5
    assert kinds(alarms(batches)) == {3: "warn", 6: "hint", 9: "stop", 10: "stop"}
    assert kinds(alarms(batches, warn_at=2, hint_at=None, stop_at=4)) == {
        2: "warn",
        **dict.fromkeys(range(4, 11), "stop"),
    }
    assert kinds(alarms(batches, warn_at=None, hint_at=None, stop_at=None)) == {}


def test_cycles_of_two_to_four_batches() -> None:
    for period in (2, 3, 4):
        cycle = [one("move", step=step % period) for step in range(period * 9)]
        assert kinds(alarms(cycle)) == {3 * period: "warn", 6 * period: "hint", 9 * period: "stop"}
    assert kinds(alarms([one("move", step=step % 5) for step in range(60)])) == {}
    found = alarms([one("a"), one("b")] * 3)[-1]
    assert found is not None
    assert found.action == "warn"
    assert "the same 2 answers" in found.text


def test_no_false_alarm() -> None:
    assert kinds(alarms([one("move", distance=step) for step in range(50)])) == {}
    assert kinds(alarms([*([one("a")] * 2), one("b")] * 2)) == {}
    assert kinds(alarms([one("say", n=1), one("say", n=True), one("say", n="1")] * 2)) == {}
    assert kinds(alarms([*[one("a")] * 2, one("b"), *[one("a")] * 2, one("c"), *[one("a")] * 2])) == {}


def test_a_cycle_within_a_cycle_counts_by_the_shortest() -> None:
    assert kinds(alarms([one("x"), *[one("a")] * 4])) == {4: "warn"}


def test_polling_is_no_loop_and_hides_none() -> None:
    exempt = frozenset({"observe"})
    assert kinds(alarms([one("observe")] * 50, exempt)) == {}
    batches = [one("move", n=1), one("observe")] * 3
    assert kinds(alarms(batches, exempt)) == {5: "warn"}
    mixed: list[Batch] = [[("move", {"n": 1}), ("observe", {"k": k})] for k in range(3)]
    assert kinds(alarms(mixed, exempt)) == {3: "warn"}
