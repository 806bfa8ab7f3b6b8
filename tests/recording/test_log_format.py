"""Logs are LCM's: byte for byte what EventLog writes, and read as EventLog reads them."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.bus.sizes import MAX_MESSAGE
from dimos_streams.errors import UserError
from dimos_streams.recording.files.claim import part_path
from dimos_streams.recording.format import pack
from dimos_streams.recording.reader import LogReader
from dimos_streams.recording.writer import LogWriter
from tests.helpers import open_files
from tests.recording.logs import START, full_disk, raw, read_log, size_of, some_events, write_log

EVENTS = [*some_events(300), (START + 3_000_000, "/big#sensor_msgs.Image", bytes(3_000_000))]


@pytest.mark.feature("F7")
def test_bytes_are_those_of_event_log(tmp_path: Path, lcm_library: Any) -> None:
    ours = write_log(tmp_path / "ours.lcmlog", EVENTS)
    theirs = tmp_path / "theirs.lcmlog"
    log = lcm_library.EventLog(str(theirs), "w")
    for utime, channel, data in EVENTS:
        log.write_event(utime, channel, data)
    log.close()
    assert ours.read_bytes() == theirs.read_bytes()
    assert raw(read_log(theirs)) == EVENTS
    log = lcm_library.EventLog(str(ours))
    assert [(event.eventnum, event.timestamp, event.channel, event.data) for event in log] == [
        (number, *event) for number, event in enumerate(EVENTS)
    ]
    log.close()


def test_an_empty_log_is_one(tmp_path: Path) -> None:
    assert read_log(write_log(tmp_path / "a.lcmlog", [])) == []


def test_appending_goes_on(tmp_path: Path) -> None:
    path = write_log(tmp_path / "a.lcmlog", EVENTS[:100])
    with LogWriter(path, append=True) as writer:
        for event in EVENTS[100:]:
            writer.write(*event)
    assert path.read_bytes() == write_log(tmp_path / "b.lcmlog", EVENTS).read_bytes()


@pytest.mark.parametrize("lost", [1, 17, 5000])
def test_a_cut_off_end_is_repaired_with_one_warning(
    tmp_path: Path, lost: int, settled_log: pytest.LogCaptureFixture
) -> None:
    whole = write_log(tmp_path / "a.lcmlog", EVENTS[:50]).read_bytes()
    cut = tmp_path / "b.lcmlog"
    cut.write_bytes(whole[:-lost])
    survivors = raw(read_log(cut))
    assert survivors == EVENTS[: len(survivors)]
    left = len(whole) - lost - sum(map(size_of, survivors))
    with settled_log.at_level(logging.WARNING), LogWriter(cut, append=True) as writer:
        writer.write(*EVENTS[60])
    assert raw(read_log(cut)) == [*survivors, EVENTS[60]]
    assert [event.number for event in read_log(cut)] == list(range(len(survivors) + 1))
    assert len(settled_log.records) == (1 if left else 0)
    assert not left or f"its last {left} bytes were cut off" in settled_log.text


@pytest.mark.parametrize(
    "left_out",
    [pack(1, START, "/x", bytes(MAX_MESSAGE + 1)), pack(1, START, "/x", b"").replace(b"/x", b"\xff\xff")],
    ids=["too large", "no text"],
)
def test_a_whole_event_that_is_left_out_stays_where_the_log_is_appended_to(tmp_path: Path, left_out: bytes) -> None:
    path = write_log(tmp_path / "a.lcmlog", EVENTS[:1])
    before = path.read_bytes() + left_out
    path.write_bytes(before)
    with LogWriter(path, append=True) as writer:
        writer.write(*EVENTS[1])
    assert path.read_bytes() == before + pack(2, *EVENTS[1])
    with LogReader(path) as reader:
        assert raw(reader.events()) == EVENTS[:2]
        assert reader.damaged_bytes == len(left_out)


def test_an_event_larger_than_any_message_is_cut_off_if_it_is_unfinished(tmp_path: Path) -> None:
    path = write_log(tmp_path / "a.lcmlog", EVENTS[:1])
    before = path.read_bytes()
    path.write_bytes(before + pack(1, START, "/x", bytes(MAX_MESSAGE + 1))[:-1])
    with LogWriter(path, append=True) as writer:
        writer.write(*EVENTS[1])
    assert path.read_bytes() == before + pack(1, *EVENTS[1])


@pytest.mark.parametrize("parts", [1, 2])
def test_a_part_whose_beginning_the_disk_refused_describes_itself(tmp_path: Path, parts: int) -> None:
    split_bytes = 100 if parts == 2 else None
    writer = LogWriter(tmp_path / "a.lcmlog", preamble=("META", b"data"), split_bytes=split_bytes).open()
    if parts == 2:
        writer.write(START, "/full", bytes(100))
    with full_disk(), pytest.raises(OSError, match="File too large"):
        writer.write(START + 1_000_000, "/lost", b"")
    writer.resume()
    writer.write(START + 2_000_000, "/x", b"")
    writer.close()
    assert [event.channel for event in read_log(writer.part)] == ["META", "/x"]


def test_a_log_that_is_removed_while_it_is_written_begins_anew(tmp_path: Path) -> None:
    with LogWriter(tmp_path / "a.lcmlog", preamble=("META", b"data")) as writer:
        writer.write(START, "/lost", b"")
        writer.path.unlink()
        with pytest.raises(OSError, match="it was removed, with all that was in it"):
            writer.flush()
        assert writer.resume() == 2
        writer.write(START + 1_000_000, "/x", b"")
    assert [(event.number, event.channel) for event in read_log(writer.path)] == [(0, "META"), (1, "/x")]


def test_what_was_in_a_removed_log_counts_as_lost_though_the_first_attempt_to_go_on_fails(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    with LogWriter(folder / "a.lcmlog") as writer:
        writer.write(START, "/x", b"")
        shutil.rmtree(folder)
        with pytest.raises(FileNotFoundError):
            writer.resume()
        folder.mkdir()
        assert writer.resume() == 1


def test_what_is_in_a_moved_log_is_not_lost_where_another_one_is_begun(tmp_path: Path) -> None:
    with LogWriter(tmp_path / "a.lcmlog") as writer:
        writer.write(START, "/x", b"")
        writer.flush()
        moved = writer.path.rename(tmp_path / "b.lcmlog")
        writer.write(START, "/y", b"")
        assert writer.resume() == 1
        writer.write(START + 1_000_000, "/z", b"")
    assert next(event.channel for event in read_log(moved)) == "/x"
    assert [(event.number, event.channel) for event in read_log(writer.path)] == [(0, "/z")]


def test_a_log_that_is_moved_while_it_is_written_goes_on(tmp_path: Path) -> None:
    with LogWriter(tmp_path / "a.lcmlog") as writer:
        moved = writer.path.rename(tmp_path / "b.lcmlog")
        writer.write(START, "/x", b"")
        writer.flush()
    assert [event.channel for event in read_log(moved)] == ["/x"]


@pytest.mark.parametrize("suffix", [".lcmlog", ""])
def test_where_earlier_parts_were_moved_away_it_goes_on_behind_the_later_ones(tmp_path: Path, suffix: str) -> None:
    later = write_log(tmp_path / f"a.2{suffix}", EVENTS[:1])
    copy = write_log(tmp_path / f"a.20261129{suffix}", EVENTS[:1])
    with LogWriter(tmp_path / f"a{suffix}", append=True, split_bytes=1) as writer:
        for event in EVENTS[1:4]:
            writer.write(*event)
    assert raw(read_log(copy)) == EVENTS[:1]
    written = [later, tmp_path / f"a.3{suffix}", tmp_path / f"a.4{suffix}"]
    assert [raw(read_log(path)) for path in written] == [EVENTS[:2], EVENTS[2:3], EVENTS[3:4]]
    assert not (tmp_path / f"a{suffix}").exists()


def test_a_part_that_somebody_else_is_writing_is_passed_over(tmp_path: Path) -> None:
    with LogWriter(tmp_path / "a.1.lcmlog") as other, LogWriter(tmp_path / "a.lcmlog", split_bytes=1) as writer:
        other.write(*EVENTS[0])
        for event in EVENTS[1:3]:
            writer.write(*event)
    written = [tmp_path / "a.1.lcmlog", tmp_path / "a.lcmlog", tmp_path / "a.2.lcmlog"]
    assert [raw(read_log(path)) for path in written] == [EVENTS[:1], EVENTS[1:2], EVENTS[2:3]]


def test_what_is_no_log_is_not_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, " * 100)
    before = path.read_bytes()
    with pytest.raises(UserError, match="no LCM log"):
        LogWriter(path, append=True).open()
    assert path.read_bytes() == before


@pytest.mark.parametrize("is_link", [False, True])
def test_what_is_no_log_is_not_replaced_by_one(tmp_path: Path, is_link: bool) -> None:
    thesis, path = tmp_path / "thesis.txt", tmp_path / "l.lcmlog"
    thesis.write_text("my thesis")
    if is_link:
        path.symlink_to(thesis)
    else:
        thesis.rename(path)
    with pytest.raises(UserError, match=r"l.lcmlog' can't be written: it is no LCM log; nothing else is replaced"):
        LogWriter(path).open()
    assert path.read_text() == "my thesis"
    for before in (b"", pack(0, 1, "/a", b"x")):
        path.write_bytes(before)
        with LogWriter(path) as writer:
            writer.write(1, "/b", b"y")
        with LogReader(path) as reader:
            assert [event.channel for event in reader.events()] == ["/b"]


def test_a_pipe_and_a_device_are_no_logs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(UserError, match="it is a device or a pipe"):
            LogReader(path).open()


def test_parts_begin_with_the_preamble(tmp_path: Path) -> None:
    path = tmp_path / "a.lcmlog"
    with LogWriter(path, split_bytes=20_000, preamble=("about", b"me")) as writer:
        for event in EVENTS[:100]:
            writer.write(*event)
    parts = sorted(tmp_path.iterdir())
    assert path in parts
    assert part_path(path, 1) in parts
    assert len(parts) > 3
    found = []
    for number in range(len(parts)):
        first, *rest = read_log(part_path(path, number))
        assert (first.number, first.channel, first.data, first.utime) == (0, "about", b"me", rest[0].utime)
        assert part_path(path, number).stat().st_size < 20_000 + 6000
        found += raw(rest)
    assert found == EVENTS[:100]


def test_events_reach_the_file_within_a_second(tmp_path: Path) -> None:
    path = tmp_path / "a.lcmlog"
    with LogWriter(path) as writer:
        for tick in range(100):
            writer.write(START + tick * 50_000, "/x", b"data")
            on_disk = len(read_log(path))
            assert on_disk >= tick + 1 - 20


def test_events_reach_the_file_also_when_time_jumps_back(tmp_path: Path) -> None:
    path = tmp_path / "a.lcmlog"
    with LogWriter(path) as writer:
        for utime in (START, START - 3_600_000_000, START - 3_600_000_000 + 600_000):
            writer.write(utime, "/x", b"data")
            assert read_log(path)[-1].utime == utime
        writer.write(utime + 400_000, "/x", b"data")
        assert len(read_log(path)) == 3, "not each is written by itself"


def test_a_system_that_gives_a_file_in_pieces_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_log(tmp_path / "a.lcmlog", EVENTS[:100])
    whole = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, length, at: whole(fd, min(length, 1000), at))
    assert raw(read_log(path)) == EVENTS[:100]


def test_a_reader_lets_go_of_its_file(tmp_path: Path) -> None:
    path = write_log(tmp_path / "a.lcmlog", EVENTS[:10])
    for _ in range(5):
        with LogReader(path) as reader:
            assert next(iter(reader.events())).number == 0
            assert str(path) in open_files()
        assert str(path) not in open_files()


def test_what_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.lcmlog", tmp_path):
        with pytest.raises(UserError, match=str(path)), LogReader(path):
            pass
