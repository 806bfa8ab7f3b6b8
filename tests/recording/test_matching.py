"""Which replayed output belongs to which recorded one, and what is said of those that have none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dimos_streams.regression.differences import FieldDifference
from dimos_streams.regression.matching import Difference, Matcher, Output, StreamResult
from tests.recording.logs import START

WINDOW_US = 100
Side = list[tuple[int, str]]
"""Times after the start, and values; those that begin with ``?`` are optional."""


def differ(recorded: str, replayed: str) -> list[FieldDifference]:
    return [] if recorded == replayed else [FieldDifference("text", recorded, replayed)]


def outputs(side: Side) -> list[Output[str]]:
    return [Output(START + after, text.removeprefix("?"), text.startswith("?")) for after, text in side]


def matcher(left: list[str] | None = None, *, in_order: bool = False) -> Matcher[str]:
    reported = [] if left is None else left
    return Matcher(
        "/x",
        differ,
        lambda text: f"<{text}>",
        window_us=WINDOW_US,
        in_order=in_order,
        on_left=lambda output: reported.append(output.value),
    )


def matched(recorded: Side, replayed: Side, left: list[str] | None = None, *, in_order: bool = False) -> StreamResult:
    """As a replay reports it: what was recorded is known when its time has come."""
    made = matcher(left, in_order=in_order)
    for output in outputs(recorded):
        made.recorded(output)
    for output in outputs(replayed):
        made.replayed(output)
    return made.finish()


def counts(result: StreamResult) -> tuple[int, int, int, int]:
    return result.matched, result.different, result.missing, result.extra


@pytest.mark.parametrize(
    ("recorded", "replayed", "expected"),
    [
        ([(0, "a")], [(0, "a")], (1, 0, 0, 0)),
        ([(0, "a")], [(100, "a")], (1, 0, 0, 0)),
        ([(100, "a")], [(0, "a")], (1, 0, 0, 0)),
        ([(0, "a")], [(101, "a")], (0, 0, 1, 1)),
        ([(101, "a")], [(0, "a")], (0, 0, 1, 1)),
        ([(0, "a")], [(50, "b")], (0, 1, 0, 0)),
        ([(0, "a")], [(101, "b")], (0, 0, 1, 1)),
        ([(0, "a")], [], (0, 0, 1, 0)),
        ([], [(0, "a")], (0, 0, 0, 1)),
        # What agrees is looked for before what is near.
        ([(0, "a")], [(1, "b"), (90, "a")], (1, 0, 0, 1)),
        ([(0, "a"), (10, "b")], [(0, "b"), (10, "a")], (1, 0, 1, 1)),
        # Where nothing agrees it is the nearest that differs.
        ([(50, "a"), (300, "c")], [(0, "b"), (55, "b"), (300, "c")], (1, 1, 0, 1)),
        ([(50, "a"), (300, "c")], [(45, "b"), (100, "b"), (300, "c")], (1, 1, 0, 1)),
        ([(0, "a"), (1000, "b"), (2000, "c")], [(0, "a"), (2000, "c")], (2, 0, 1, 0)),
        ([(0, "a"), (2000, "c")], [(0, "a"), (1000, "b"), (2000, "c")], (2, 0, 0, 1)),
        # Others may have sent it, or the log ends before it.
        ([(0, "?a")], [], (0, 0, 0, 0)),
        ([(0, "?a")], [(0, "a")], (1, 0, 0, 0)),
        ([(0, "?a")], [(0, "b")], (0, 0, 0, 1)),
        ([], [(0, "?a")], (0, 0, 0, 0)),
        ([(0, "a")], [(0, "a"), (10, "?b")], (1, 0, 0, 0)),
    ],
)
def test_what_belongs_together(recorded: Side, replayed: Side, expected: tuple[int, int, int, int]) -> None:
    result = matched(recorded, replayed)
    assert counts(result) == expected
    assert result.recorded == result.matched + result.different + result.missing
    assert result.replayed == result.matched + result.different + result.extra
    assert result.recorded + result.by_others == len(recorded)
    assert result.wrong == sum(expected[1:])


def test_what_the_nth_is_in_a_call_belongs_to_the_nth_whenever_it_comes() -> None:
    result = matched([(0, "a"), (10, "b"), (20, "c")], [(100, "a"), (111, "b"), (5000, "x")], in_order=True)
    assert counts(result) == (1, 2, 0, 0)
    assert result.first is not None
    assert (result.first.utime, result.first.text) == (START + 10, "<b>")
    assert [str(one) for one in result.first.fields] == [
        f"time: recorded {(START + 10) / 1e6:.6f}, replayed {(START + 111) / 1e6:.6f}"
    ]
    assert result.worst.keys() == {"time"}
    amount_s, at = result.worst["time"]
    assert (round(amount_s * 1e6), at) == (4980, START + 20)
    assert counts(matched([(0, "a"), (1, "b")], [(0, "a")], in_order=True)) == (1, 0, 1, 0)
    assert counts(matched([(0, "a")], [(0, "a"), (1, "b")], in_order=True)) == (1, 0, 0, 1)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(2 * WINDOW_US + 1, 10_000), st.integers(-WINDOW_US, WINDOW_US))))
def test_what_comes_a_little_earlier_or_later_agrees(steps: list[tuple[int, int]]) -> None:
    at, recorded, replayed = 0, [], []
    for number, (pause, late) in enumerate(steps):
        at += pause
        recorded.append((at, f"{number % 3}"))
        replayed.append((at + late, f"{number % 3}"))
    assert counts(matched(recorded, replayed)) == (len(steps), 0, 0, 0)


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(0, 1000), st.sampled_from("ab?")), max_size=12),
    st.lists(st.tuples(st.integers(0, 1000), st.sampled_from("ab?")), max_size=12),
)
def test_nothing_is_counted_twice_or_forgotten(one: Side, two: Side) -> None:
    recorded, replayed, left = sorted(one), sorted(two), list[str]()
    result = matched(recorded, replayed, left)
    assert result.recorded == result.matched + result.different + result.missing
    assert result.replayed == result.matched + result.different + result.extra
    assert result.recorded + result.by_others == len(recorded)
    assert result.by_others == len(left)
    assert len(replayed) - sum(text == "?" for _, text in replayed) <= result.replayed <= len(replayed)


def test_who_else_may_have_sent_it_is_reported() -> None:
    left: list[str] = []
    result = matched([(0, "?a"), (1000, "b"), (2000, "?c")], [(1000, "b"), (2000, "c")], left)
    assert (left, result.by_others, counts(result)) == (["a"], 1, (2, 0, 0, 0))


def test_what_can_not_find_its_counterpart_any_more_is_settled_at_once() -> None:
    """What is kept is bounded by the window, however long the log is."""
    made = matcher()
    made.recorded(outputs([(0, "a")])[0])
    made.settle(START + WINDOW_US)
    assert made.result.missing == 0
    made.settle(START + WINDOW_US + 1)
    assert made.result.missing == 1
    made.replayed(outputs([(300, "b")])[0])
    made.settle(START + 300 + WINDOW_US)
    assert made.result.extra == 0
    made.settle(START + 300 + WINDOW_US + 1)
    assert made.result.extra == 1
    made.replayed(outputs([(1000, "c")])[0])
    made.recorded(outputs([(1000 + WINDOW_US + 1, "d")])[0])
    made.settle(START + 1000 + WINDOW_US)
    assert made.result.extra == 2, "what is recorded next is too late for it"
    assert counts(made.finish()) == (0, 0, 2, 2)
    assert counts(made.finish()) == (0, 0, 2, 2)


def test_what_is_too_old_for_all_to_come_is_not_for_what_waits() -> None:
    made = matcher()
    made.recorded(outputs([(50, "a")])[0])
    made.replayed(outputs([(0, "b")])[0])
    made.settle(START + 50 + WINDOW_US)
    assert counts(made.finish()) == (0, 1, 0, 0)


def test_where_nothing_agrees_it_is_compared_with_what_came_nearest() -> None:
    result = matched([(50, "a"), (300, "c")], [(45, "near"), (100, "far"), (300, "c")])
    assert result.first is not None
    assert [each.replayed for each in result.first.fields] == ["near"]


def test_a_call_waits_for_what_it_has_said_next_however_long_it_takes() -> None:
    made = matcher(in_order=True)
    made.replayed(outputs([(0, "a")])[0])
    made.settle(START + 10_000_000)
    assert counts(made.result) == (0, 0, 0, 0)
    made.recorded(outputs([(50, "a")])[0])
    assert counts(made.finish()) == (1, 0, 0, 0)


@pytest.mark.parametrize(
    ("wrong", "recorded", "replayed", "unmatched", "passed"),
    [
        (0, 10, 10, 0.0, True),
        (1, 10, 10, 0.0, False),
        (1, 10, 10, 0.1, True),
        (2, 10, 10, 0.1, False),
        (2, 10, 20, 0.1, True),
        (2, 20, 10, 0.1, True),
        (2, 29, 29, 0.1, True),
        (3, 29, 29, 0.1, False),
        (1, 2, 2, 0.1, True),
        (2, 2, 2, 0.1, False),
        (29, 100, 100, 0.29, True),
        (30, 100, 100, 0.29, False),
        (1, 1, 1, 0.9, False),
        (1, 1, 1, 1.0, True),
        (0, 0, 0, 0.1, True),
    ],
)
def test_a_share_may_be_wrong_and_one_at_least(
    wrong: int, recorded: int, replayed: int, unmatched: float, passed: bool
) -> None:
    for field in ("different", "missing", "extra"):
        result = StreamResult("/x", recorded=recorded, replayed=replayed)
        setattr(result, field, wrong)
        assert result.passed(unmatched) is passed
        result.strict = True
        assert result.passed(unmatched) is (wrong == 0)


@pytest.mark.parametrize(
    ("recorded", "replayed", "passed"),
    [
        ([(0, "a")], [], False),
        ([(0, "a")], [(0, "b")], False),
        ([(0, "a")], [(0, "a"), (500, "b")], True),
        ([(0, "a"), (500, "b")], [(0, "a")], True),
        ([], [(0, "a")], True),
    ],
)
def test_the_one_output_that_was_recorded_is_not_the_one_that_may_be_wrong(
    recorded: Side, replayed: Side, passed: bool
) -> None:
    """A module that sends its only message no more behaves differently, whatever the tolerance."""
    assert matched(recorded, replayed).passed(0.1) is passed


def test_the_first_and_the_worst_are_kept() -> None:
    def wrong(after: int, **amounts: float | None) -> Difference:
        fields = tuple(FieldDifference(name, "1", "2", amount) for name, amount in amounts.items())
        return Difference(START + after, "/x", "different", fields)

    result = StreamResult("/x")
    later, first = wrong(20, x=0.0, y=3.0, z=None), wrong(10, x=2.0, y=1.0)
    for difference in (later, first, wrong(30, x=2.0)):
        result.note(difference)
    assert (result.different, result.first) == (3, first)
    assert result.worst == {"x": (2.0, START + 10), "y": (3.0, START + 20)}
    result.note(wrong(10, x=1.0))
    assert result.first is first, "of several at one instant the one that came first"
    result.note(wrong(40, **{f"f{number}": 1.0 for number in range(30)}))
    result.note(wrong(50, f0=2.0, f17=3.0, f29=9.0))
    assert len(result.worst) == 20
    assert (result.worst["f0"], result.worst["f17"]) == ((2.0, START + 50), (3.0, START + 50))
    assert "f29" not in result.worst
