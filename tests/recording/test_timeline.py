"""Times of logs that can't be: a replay neither waits for them nor lets them move what is around."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dimos_streams.bus import create_bus
from dimos_streams.clock import monotonic, run_virtual
from dimos_streams.recording.cut import LogPart, timed
from dimos_streams.recording.format import HEADER, LogEvent
from dimos_streams.recording.metadata import CHANNEL
from dimos_streams.recording.player import Player
from dimos_streams.recording.reader import LogReader
from dimos_streams.recording.steady_times import LONGEST_PAUSE_S, SetBack, Steadiness, going_on, steady
from dimos_streams.recording.summary import summarize
from dimos_streams.regression.replay import ReplayOptions, replay
from dimos_streams.regression.tolerances import Tolerances
from tests.recording.logs import START, raw, read_log, write_log

STEP = 100_000
NEAR = Tolerances(time_s=0.05, absolute=1e-6)


def log_of(utimes: list[int]) -> list[LogEvent]:
    return [LogEvent(number, utime, "/x", b"", 0) for number, utime in enumerate(utimes)]


@pytest.mark.slow
@given(st.integers(2, 30), st.data(), st.integers(21, 62))
def test_one_flipped_bit_moves_one_event(count: int, data: st.DataObject, bit: int) -> None:
    true = [START + STEP * number for number in range(count + 1)]
    place = data.draw(st.integers(1, count - 1))
    flipped = list(true)
    flipped[place] ^= 1 << bit
    found = [event.utime for event in steady(log_of(flipped))]
    assert [*found[:place], *found[place + 1 :]] == [*true[:place], *true[place + 1 :]]
    assert found[place] <= true[place]


@pytest.mark.parametrize("bit", [33, 40, 51, 62])
def test_a_first_event_whose_stamp_is_far_ahead_begins_with_the_second(bit: int) -> None:
    true = [START + STEP * number for number in range(6)]
    found = [event.utime for event in steady(log_of([true[0] + (1 << bit), *true[1:]]))]
    assert found == [true[1], *true[1:]]
    assert [event.utime for event in steady(log_of([true[0] + (1 << bit), true[1]]))] == [true[1], true[1]]


def test_a_long_pause_is_cut_out_and_what_follows_keeps_its_distances() -> None:
    pause = int(LONGEST_PAUSE_S * 1e6)
    utimes = [START, START + pause, START + 3 * pause, START + 3 * pause + STEP, START + 3 * pause - 5]
    found = [event.utime - START for event in steady(log_of(utimes))]
    assert found == [0, pause, pause, pause + STEP, pause - 5]


@pytest.mark.parametrize("back_s", [0.5, 3.0, 7200.0])
def test_where_the_clock_was_set_back_it_goes_on(back_s: float) -> None:
    back = int(back_s * 1e6)
    true = [START + STEP * number for number in range(8)]
    known = Steadiness()
    events = log_of([utime - back * (number >= 4) for number, utime in enumerate(true)])
    found = [event.utime for event in steady(events, known)]
    assert found == [*true[:4], *(utime - STEP for utime in true[4:])], "nobody knows how long it took to set it"
    assert known.set_backs == [SetBack(4, back - STEP, true[3])]
    summary = Steadiness()
    assert [utime for utime, _ in going_on(events, summary)] == found
    assert summary.set_backs == known.set_backs


def test_a_summary_names_the_event_whose_stamp_is_impossible(tmp_path: Path) -> None:
    times = [START, START + STEP, START + STEP + 100_000_000, START + 3 * STEP, START + 4 * STEP]
    with LogReader(write_log(tmp_path / "a.lcmlog", [(utime, "/x", b"") for utime in times])) as log:
        summary = summarize([log])
    assert summary.impossible == ["event 2 is 100.0 s ahead of its neighbours"]
    assert summary.set_backs == []


@pytest.mark.parametrize("stray", [-1000, 9000])
def test_seconds_count_from_the_first_event_for_all_commands_whatever_a_stray_stamp_says(
    stray: int, tmp_path: Path
) -> None:
    times = [0, stray, 1, 2, 3] if stray < 0 else [stray, 0, 1, 2, 3]
    events = [(START + time * 1_000_000, "/x", b"") for time in times]
    with LogReader(write_log(tmp_path / "a.lcmlog", events)) as log:
        summary = summarize([log])
        assert (summary.first, summary.gaps) == (START, [])
        assert [after_s for after_s, _ in timed([log])] == times


def test_what_overtook_others_sets_no_clock_back() -> None:
    utimes = [START, START + STEP, START + STEP - 90_000, START + STEP - 80_000, START + 2 * STEP]
    known = Steadiness()
    assert [event.utime for event in steady(log_of(utimes), known)] == utimes
    lone = [START, START + STEP, START + 2 * STEP, START - 60_000_000, START + 3 * STEP]
    assert [event.utime for event in steady(log_of(lone), known)] == lone
    assert known.set_backs == []


def test_messages_that_are_far_apart_show_a_clock_that_was_set_back_too() -> None:
    times = [START + 1_000_000 * number for number in (1, 2, 3, 1, 2, 3)]
    known, summary = Steadiness(), Steadiness()
    found = [event.utime - START for event in steady(log_of(times), known)]
    assert found == [1_000_000, 2_000_000, 3_000_000, 3_000_000, 4_000_000, 5_000_000]
    assert [utime - START for utime, _ in going_on(log_of(times), summary)] == found
    assert known.set_backs == summary.set_backs == [SetBack(3, 2_000_000, START + 3_000_000)]


def test_two_messages_that_came_late_set_no_clock_back() -> None:
    times = [START + STEP * number for number in (0, 10, 20, 15, 16, 30, 40)]
    known, summary = Steadiness(), Steadiness()
    assert [event.utime for event in steady(log_of(times), known)] == times
    assert [utime for utime, _ in going_on(log_of(times), summary)] == times
    assert known.set_backs == summary.set_backs == []


@pytest.mark.parametrize("places", [(0,), (1, 2), (3, 7), tuple(range(2, 60)), (9,)])
def test_metadata_keeps_its_place(places: tuple[int, ...]) -> None:
    events = [
        event._replace(channel=CHANNEL, utime=0) if event.number in places else event
        for event in log_of([START + STEP * number for number in range(max(10, len(places) + 10))])
    ]
    found = [event.number for event in steady(events)]
    assert sorted(found) == list(range(len(events)))
    assert found == sorted(found) or len(places) > 32


@pytest.mark.slow
@pytest.mark.feature("F3")
def test_a_robot_whose_clock_was_set_back_is_replayed_as_if_it_had_not(mission_log: Path, tmp_path: Path) -> None:
    events = raw(read_log(mission_log))
    middle = len(events) // 2
    hour_us = 3_600_000_000
    earlier = [(utime - hour_us, channel, data) for utime, channel, data in events[middle:]]
    log = write_log(tmp_path / "back.lcmlog", [*events[:middle], *earlier])
    report = replay(log, ReplayOptions(modules=("follow",), tolerances=NEAR))
    assert report.passed, "\n".join(report.lines())
    assert sum(stream.matched for stream in report.streams) > 3
    assert any(f"at event {middle}; " in remark and "goes back by 3" in remark for remark in report.remarks)


def flip_the_last(path: Path) -> None:
    """Make the last event 2,284 years later."""
    last = read_log(path)[-1]
    with path.open("r+b") as file:
        file.seek(last.offset)
        sync, number, utime, channel, size = HEADER.unpack(file.read(HEADER.size))
        file.seek(last.offset)
        file.write(HEADER.pack(sync, number, utime ^ 1 << 56, channel, size))


def test_the_time_of_metadata_is_waited_for_by_nobody(mission_log: Path, tmp_path: Path) -> None:
    events = raw(read_log(mission_log))
    year_us = 365 * 86_400_000_000
    late = [(utime + year_us * (channel == CHANNEL), channel, data) for utime, channel, data in events]
    assert late != events
    report = replay(write_log(tmp_path / "late.lcmlog", late), ReplayOptions(modules=("drive",)))
    assert report.passed, "\n".join(report.lines())
    assert report.span_s < 60


@pytest.mark.feature("F3")
def test_a_replay_ends_although_a_stamp_is_damaged(mission_log: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.lcmlog"
    damaged.write_bytes(mission_log.read_bytes())
    flip_the_last(damaged)
    report = replay(damaged, ReplayOptions(modules=("lookout",)))
    assert report.problem == ""


def played_s(path: Path) -> float:
    """The seconds that 20 events of a log take at their pace."""

    async def play() -> float:
        bus = create_bus("memq://")
        await bus.open()
        began = monotonic()
        with LogReader(path) as log:
            assert await Player([log], LogPart()).play(bus) == 20
        await bus.close()
        return monotonic() - began

    return run_virtual(play())


def test_playing_does_not_wait_for_it(tmp_path: Path) -> None:
    path = write_log(tmp_path / "a.lcmlog", [(START + STEP * number, "/x", b"") for number in range(20)])
    flip_the_last(path)
    assert played_s(path) < 3


def test_playing_goes_on_at_its_pace_where_the_clock_was_set_back(tmp_path: Path) -> None:
    times = [START + STEP * number - 3_600_000_000 * (number >= 10) for number in range(20)]
    path = write_log(tmp_path / "a.lcmlog", [(time, "/x", b"") for time in times])
    assert played_s(path) == pytest.approx(1.8, abs=0.01)
