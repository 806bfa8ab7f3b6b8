"""The report of a replay: for people, as JSON, and as a picture."""

from __future__ import annotations

import errno
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.errors import UserError
from dimos_streams.regression.comparison import Series
from dimos_streams.regression.differences import FieldDifference
from dimos_streams.regression.matching import Difference, StreamResult
from dimos_streams.regression.plot import draw
from dimos_streams.regression.report import Report
from dimos_streams.regression.tolerances import Tolerances
from tests.recording.logs import START

VEL = "/vel#geometry_msgs.Twist"
CALL = "follow_person [c1]"


def difference(after_s: float, stream: str, what: Any = "different", text: str = "", fields: int = 1) -> Difference:
    found = tuple(FieldDifference(f"f{number}", "1", "2", 1.0) for number in range(fields))
    return Difference(START + round(after_s * 1e6), stream, what, found if what == "different" else (), text)


def result(
    stream: str, *wrong: Difference, matched: int = 5, strict: bool = False, by_others: int = 0
) -> StreamResult:
    made = StreamResult(stream, strict, matched + len(wrong), matched + len(wrong), matched, by_others=by_others)
    for one in wrong:
        made.note(one)
    return made


def report(*streams: StreamResult, unmatched: float = 0.0, **more: Any) -> Report:
    return Report(
        log="a.lcmlog",
        modules=("follow", "drive"),
        tolerances=Tolerances(unmatched=unmatched),
        streams=list(streams),
        start_utime=START,
        span_s=12.3456,
        calls=2,
        inputs=345,
        **more,
    )


def test_one_call_is_no_calls() -> None:
    reported = replace(report(), calls=1, inputs=1)
    assert next(reported.lines()).endswith(": 1 input, 1 call")


def test_lines_of_one_that_passed() -> None:
    reported = report(result(VEL, by_others=3), remarks=("nothing was recorded on /scan",))
    assert reported.passed
    assert list(reported.lines()) == [
        "passed: follow, drive on 12.3 s of a.lcmlog: 345 inputs, 2 calls",
        f"  ok   {VEL}: 5 of 5 agree, 3 by other modules",
        "  nothing was recorded on /scan",
    ]


def test_lines_of_one_that_failed() -> None:
    wrong = [difference(1.5, VEL), difference(2, VEL, "missing", "Twist"), difference(3, VEL, "extra", "Twist")]
    assert list(report(result(VEL, *wrong), result("/b")).lines()) == [
        "FAILED: follow, drive on 12.3 s of a.lcmlog: 345 inputs, 2 calls",
        f"  first difference after 1.500 s, in {VEL}:",
        "    f0: recorded 1, replayed 2",
        f"  FAIL {VEL}: 5 of 8 agree, 1 differ, 1 missing, 1 too many, at most f0 by 1",
        "  ok   /b: 5 of 5 agree",
    ]


def test_how_a_failed_call_ended_is_shown_below_it_and_it_comes_before_its_missing_progress() -> None:
    call = result(CALL, difference(1, CALL, text="close 'done'"), strict=True)
    call.close = "recorded completed 'done', replayed rejected 'no such skill'"
    progress = result(f"{CALL} progress", difference(1, f"{CALL} progress", "missing", "progress 'half'"))
    reported = report(progress, call)
    assert list(reported.lines())[1:] == [
        f"  first difference after 1.000 s, in {CALL}, close 'done'",
        "    f0: recorded 1, replayed 2",
        f"  FAIL {CALL} progress: 5 of 6 agree, 1 missing",
        f"  FAIL {CALL}: 5 of 6 agree, 1 differ, at most f0 by 1",
        "       close: recorded completed 'done', replayed rejected 'no such skill'",
    ]
    assert reported.to_dict()["streams"][1]["close"] == call.close


def test_a_run_with_a_problem_has_not_passed_whatever_agrees() -> None:
    reported = report(result(VEL), problem="it broke")
    assert not reported.passed
    assert list(reported.lines())[1] == "  it broke"
    assert reported.to_dict()["problem"] == "it broke"


@pytest.mark.parametrize(
    ("first", "shown"),
    [
        (difference(0.25, CALL, "missing", "update 'x'"), [": not given again: update 'x'"]),
        (difference(0.25, CALL, "extra", "update 'x'"), [": not in the recording: update 'x'"]),
        (difference(0.25, CALL, text="update 'x'"), [", update 'x'", "    f0: recorded 1, replayed 2"]),
        (difference(0.25, CALL, text="close 'x'"), [", close 'x'", "    f0: recorded 1, replayed 2"]),
        (difference(0.25, CALL, text="Twist()"), [":", "    f0: recorded 1, replayed 2"]),
    ],
)
def test_the_first_difference_is_shown_in_full(first: Difference, shown: list[str]) -> None:
    lines = list(report(result(CALL, first)).lines())
    shown[0] = f"  first difference after 0.250 s, in {CALL}{shown[0]}"
    assert lines[1 : 1 + len(shown)] == shown


@pytest.mark.parametrize(("fields", "more"), [(6, []), (7, ["    ... 7 fields in all"])])
def test_of_many_fields_some_are_shown(fields: int, more: list[str]) -> None:
    lines = list(report(result(VEL, difference(1, VEL, fields=fields))).lines())
    assert lines[2:-1] == [f"    f{number}: recorded 1, replayed 2" for number in range(6)] + more


def test_the_three_worst_fields_are_shown_the_worst_first() -> None:
    amounts = {"a": 0.5, "b": 2.0, "c": 0.123456, "d": 1.0}
    found = tuple(FieldDifference(name, "", "", amount) for name, amount in amounts.items())
    lines = list(report(result(VEL, Difference(START, VEL, "different", found))).lines())
    assert lines[-1].endswith(", at most b by 2, d by 1, a by 0.5")


def test_the_first_difference_is_the_earliest_of_what_has_failed_and_rather_what_a_call_reported() -> None:
    within = result("/often", difference(1, "/often"), matched=50)
    streams = [within, result(VEL, difference(3, VEL)), result(CALL, difference(3, CALL), strict=True)]
    reported = report(*streams, result("/later", difference(4, "/later")), unmatched=0.05)
    assert reported.first == streams[2].first
    assert not reported.passed
    assert report(within, unmatched=0.05).first is None
    assert report(within, unmatched=0.05).passed
    assert report(result("/later", difference(4, "/later")), *streams[1:]).first == streams[2].first


def test_json_has_all_of_it() -> None:
    found = result(VEL, difference(1.5, VEL), by_others=1), result("/often", difference(1, "/often"), matched=50)
    made = report(*found, unmatched=0.05, remarks=("a remark",), updated=True)
    reported = json.loads(json.dumps(made.to_dict()))
    first = {
        "utime": START + 1_500_000,
        "stream": VEL,
        "what": "different",
        "fields": [{"field": "f0", "recorded": "1", "replayed": "2", "amount": 1.0}],
        "text": "",
        "at_s": 1.5,
    }
    streams = reported.pop("streams")
    assert reported == {
        "log": "a.lcmlog",
        "modules": ["follow", "drive"],
        "passed": True,
        "problem": "",
        "first": None,
        "inputs": 345,
        "calls": 2,
        "span_s": 12.346,
        "settings": [],
        "remarks": ["a remark"],
        "updated": True,
    }
    assert [stream["passed"] for stream in streams] == [True, True]
    assert streams[0] == {
        "stream": VEL,
        "strict": False,
        "recorded": 6,
        "replayed": 6,
        "matched": 5,
        "different": 1,
        "missing": 0,
        "extra": 0,
        "by_others": 1,
        "by_earlier": 0,
        "close": "",
        "first": first,
        "worst": {"f0": 1.0},
        "passed": True,
    }


@pytest.mark.parametrize("amount", [math.inf, math.nan])
def test_an_amount_that_is_no_number_of_json_is_null(amount: float) -> None:
    wrong = Difference(START, VEL, "different", (FieldDifference("ranges[3]", "inf", "2", amount),))
    reported = json.loads(json.dumps(report(result(VEL, wrong)).to_dict(), allow_nan=False))
    assert reported["first"]["fields"] == [{"field": "ranges[3]", "recorded": "inf", "replayed": "2", "amount": None}]
    assert set(reported["streams"][0]["worst"].values()) <= {None}


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The pictures that would have been saved."""
    from matplotlib.figure import Figure

    saved: list[Any] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, target, **_: saved.append(figure))
    return saved


def series(*points: tuple[float, float, float]) -> Series:
    """Numbers by second: when, recorded, replayed."""
    times = [START + round(at * 1e6) for at, _, _ in points]
    return Series(
        [(time, point[1]) for time, point in zip(times, points, strict=True)],
        [(time, point[2]) for time, point in zip(times, points, strict=True)],
    )


@pytest.mark.slow
def test_a_picture_has_what_changes_and_what_differs_most_first(figures: list[Any], tmp_path: Path) -> None:
    numbers = {
        (VEL, "same"): series((0, 1, 1), (1, 1, 1)),
        (VEL, "header.stamp.nanosec"): series((0, 1, 1), (1, 2, 2)),
        (VEL, "x"): series((0, 1, 1), (1, 2, 2)),
        (VEL, "little"): series((0, 1, 1), (1, 1, 1.1)),
        (VEL, "much"): series((0, 1, 1), (1.5, 1, 3)),
    }
    found = (FieldDifference("little", "1", "1.1", 0.1), FieldDifference("much", "1", "3", 2.0))
    wrong = Difference(START + 1_500_000, VEL, "different", found)
    draw(report(result(VEL, wrong), series=numbers), tmp_path / "a.png")
    (figure,) = figures
    panels = figure.axes
    assert [panel.get_title(loc="left") for panel in panels] == ["/vel  much", "/vel  little", "/vel  x"]
    recorded, replayed, first = panels[0].lines
    assert (list(recorded.get_xdata()), list(recorded.get_ydata())) == ([0, 1.5], [1, 1])
    assert (list(replayed.get_xdata()), list(replayed.get_ydata())) == ([0, 1.5], [1, 3])
    assert (recorded.get_label(), replayed.get_label()) == ("recorded", "replayed")
    assert list(first.get_xdata()) == [1.5, 1.5]
    assert panels[0].get_legend() is not None
    assert panels[-1].get_xlabel() == "seconds of the recording"
    assert figure.get_suptitle() == "follow, drive on a.lcmlog: failed"
    draw(
        report(result(VEL), series={(VEL, f"f{number}"): numbers[VEL, "x"] for number in range(30)}),
        tmp_path / "b.png",
    )
    assert len(figures[1].axes) == 12
    assert figures[1].get_suptitle() == "follow, drive on a.lcmlog: passed"
    assert all(len(panel.lines) == 2 for panel in figures[1].axes), "nothing has failed"


@pytest.mark.slow
def test_a_picture_that_can_not_be_drawn_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changing = {(VEL, "x"): series((0, 1, 1), (1, 2, 2))}
    with pytest.raises(UserError, match="no number that was recorded or replayed changes"):
        draw(report(result(VEL), series={(VEL, "x"): series((0, 1, 1))}), tmp_path / "a.png")
    with pytest.raises(UserError, match=r"nowhere/a\.png' can't be written: No such file"):
        draw(report(result(VEL), series=changing), tmp_path / "nowhere" / "a.png")
    with pytest.raises(UserError, match=r"a\.xyz' can't be written: .*xyz"):
        draw(report(result(VEL), series=changing), tmp_path / "a.xyz")
    older = tmp_path / "older.png"
    older.write_bytes(b"older")

    def half(figure: object, target: Path, **_: Any) -> None:
        target.write_bytes(b"half")
        raise OSError(errno.EPERM, "it broke")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", half)
    with pytest.raises(UserError, match=r"older\.png' can't be written: it broke"):
        draw(report(result(VEL), series=changing), older)
    assert older.read_bytes() == b"older"
