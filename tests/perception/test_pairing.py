"""Images of one instant."""

from __future__ import annotations

from dimos_streams.perception.pairing import Pairing


def test_parts_meet_by_stamp_in_any_order() -> None:
    pairing: Pairing[str] = Pairing(["depth", "colour"])
    assert pairing.add("depth", 100, "d1") is None
    assert pairing.add("depth", 200, "d2") is None
    assert pairing.add("colour", 100, "c1") == {"depth": "d1", "colour": "c1"}
    assert pairing.add("colour", 200, "c2") == {"depth": "d2", "colour": "c2"}
    assert pairing.incomplete == 0


def test_a_single_part_is_complete_at_once() -> None:
    assert Pairing[str](["colour"]).add("colour", 1, "c") == {"colour": "c"}


def test_lost_parts_are_counted_and_do_not_pile_up() -> None:
    pairing: Pairing[int] = Pairing(["depth", "colour"], capacity=3)
    for stamp in range(10):
        assert pairing.add("depth", stamp, stamp) is None
    assert pairing.incomplete == 7
    assert pairing.add("colour", 9, 9) == {"depth": 9, "colour": 9}
    assert pairing.incomplete == 9


def test_time_that_jumps_back_starts_anew() -> None:
    pairing: Pairing[int] = Pairing(["depth", "colour"], capacity=2)
    pairing.add("depth", 1_000, 0)
    pairing.add("depth", 1_001, 0)
    for stamp in range(5):
        pairing.add("depth", stamp, stamp)
        assert pairing.add("colour", stamp, stamp) == {"depth": stamp, "colour": stamp}
