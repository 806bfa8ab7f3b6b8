"""Damaged logs: no crash, all that is intact is delivered, what was left out is reported with its position."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from dimos_streams.bus.sizes import MAX_MESSAGE
from dimos_streams.recording.format import HEADER, SYNC, SYNC_BYTES, pack
from dimos_streams.recording.reader import LogReader
from tests.recording.logs import Raw, raw, size_of, some_events


@dataclass
class Broken:
    """A log, where in it damage was done, and the events that have none."""

    data: bytes
    places: list[tuple[int, int]]
    """First and behind the last damaged byte."""
    intact: list[Raw]


def broken(seed: int) -> Broken:
    """Flips of bits, garbage between events, missing bytes and a cut-off end, by seed."""
    random_ = random.Random(seed)
    events = some_events(random_.randint(1, 30), seed)
    pieces = [bytearray(pack(number, *event)) for number, event in enumerate(events)]
    hurt: set[int] = set()
    for _ in range(random_.randint(0, 3)):
        index = random_.randrange(len(pieces))
        header = random_.random() < 0.7
        where = random_.randrange(28 if header else len(pieces[index]))
        pieces[index][where] ^= 1 << random_.randrange(8)
        hurt.add(index)
    if random_.random() < 0.3:
        index = random_.randrange(len(pieces))
        begin = random_.randrange(len(pieces[index]))
        del pieces[index][begin : begin + random_.randint(1, 60)]
        hurt.add(index)
    data, places, intact = bytearray(), [], []
    for index, piece in enumerate(pieces):
        if random_.random() < 0.1:
            garbage = random_.choice([random_.randbytes(random_.randint(1, 300)), SYNC_BYTES * 3, b"\0" * 100])
            places.append((len(data), len(data) + len(garbage)))
            data += garbage
        if index in hurt:
            places.append((len(data), len(data) + len(piece)))
        else:
            intact.append(events[index])
        data += piece
    if random_.random() < 0.3:
        cut = random_.randrange(len(data))
        places.append((cut, cut))
        del data[cut:]
        intact = [event for event in intact if event_bytes(event) in data]
    return Broken(bytes(data), places, intact)


def event_bytes(event: Raw) -> bytes:
    """The identity of an event in a log: all but its number."""
    return pack(0, *event)[12:]


@pytest.mark.slow
def test_a_log_of_nothing_but_beginnings_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "syncs.lcmlog"
    path.write_bytes(SYNC_BYTES * 20_000)
    sizes: list[int] = []

    def read(offset: int, length: int) -> bytes:
        sizes.append(length)
        return reader_read(offset, length)

    with LogReader(path) as reader:
        reader_read = reader._read
        monkeypatch.setattr(reader, "_read", read)
        assert list(reader.events()) == []
    assert sum(size for size in sizes[1:] if size > 2000) < 1.1 * 80_000, "what is looked through is read once"


def test_sync_words_without_a_possible_header_behind_them_cost_no_look_into_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, looks = tmp_path / "syncs.lcmlog", 0
    whole = pack(1, 2, "/a", b"whole")
    path.write_bytes(SYNC_BYTES * 5000 + whole)

    def read(fd: int, length: int, offset: int) -> bytes:
        nonlocal looks
        looks += 1
        return pread(fd, length, offset)

    pread = os.pread
    monkeypatch.setattr(os, "pread", read)
    with LogReader(path) as reader:
        assert [event.data for event in reader.events()] == [b"whole"]
        assert looks < 100


@pytest.mark.parametrize("number", [lambda index: 5, lambda index: 2 * index])
def test_headers_of_long_events_close_together_are_read_in_a_time_that_grows_as_the_log_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: Callable[[int], int]
) -> None:
    path, looked_at = tmp_path / "long.lcmlog", 0
    heads = [HEADER.pack(SYNC, number(index), 1, 1, MAX_MESSAGE - 100) + b"x" for index in range(2000)]
    path.write_bytes(b"".join(heads) + b"\1" * (MAX_MESSAGE + 200))

    def read(fd: int, length: int, offset: int) -> bytes:
        nonlocal looked_at
        data = pread(fd, length, offset)
        looked_at += len(data)
        return data

    pread = os.pread
    monkeypatch.setattr(os, "pread", read)
    with LogReader(path) as reader:
        assert len(list(reader.events())) == 1
        assert looked_at < 2000 * 1100 * 2 + 10 * reader.size


@pytest.mark.parametrize("block", range(10))
def test_a_thousand_damaged_logs(tmp_path: Path, block: int) -> None:
    path = tmp_path / "a.lcmlog"
    for seed in range(block * 100, block * 100 + 100):
        case = broken(seed)
        path.write_bytes(case.data)
        with LogReader(path) as reader:
            found = raw(reader.events())
            remaining = iter(found)
            for event in case.intact:
                assert event in remaining, f"seed {seed}: {event[:2]} at its place in the order is missing"
            delivered = sum(map(size_of, found))
            assert delivered + reader.damaged_bytes == len(case.data), f"seed {seed}: bytes unaccounted for"
            for damage in reader.damages:
                near = any(
                    damage.offset <= end and start <= damage.offset + damage.length for start, end in case.places
                )
                assert near, f"seed {seed}: {damage} was reported, damage was done at {case.places}"


def test_places_are_exact(tmp_path: Path) -> None:
    events = some_events(4)
    pieces = [pack(number, *event) for number, event in enumerate(events)]
    path = tmp_path / "a.lcmlog"
    path.write_bytes(pieces[0] + b"garbage" + pieces[1] + pieces[2] + pieces[3][:-1] + b"")
    with LogReader(path) as reader:
        assert raw(reader.events()) == events[:3]
        places = [(damage.offset, damage.length) for damage in reader.damages]
    assert places == [(len(pieces[0]), 7), (sum(map(len, pieces[:3])) + 7, len(pieces[3]) - 1)]


def test_a_length_that_swallows_a_whole_event_is_found_out(tmp_path: Path) -> None:
    events: list[Raw] = [(1_600_000_000_000_000 + number, "/x", bytes(34)) for number in range(5)]
    pieces = [bytearray(pack(number, *event)) for number, event in enumerate(events)]
    assert len(pieces[1]) == 64
    pieces[1][27] ^= 64  # the data's length: exactly one event longer
    path = tmp_path / "a.lcmlog"
    path.write_bytes(b"".join(pieces))
    with LogReader(path) as reader:
        assert raw(reader.events()) == [events[0], *events[2:]]
        assert [(damage.offset, damage.length) for damage in reader.damages] == [(64, 64)]


def test_a_log_inside_a_message_is_data(tmp_path: Path) -> None:
    inner = b"".join(pack(number, *event) for number, event in enumerate(some_events(5)))
    events: list[Raw] = [(1, "/a", b"x"), (2, "/upload", inner), (3, "/b", b"y")]
    path = tmp_path / "a.lcmlog"
    path.write_bytes(b"".join(pack(number, *event) for number, event in enumerate(events)))
    with LogReader(path) as reader:
        assert raw(reader.events()) == events
        assert reader.damages == []


def test_what_looks_like_an_event_inside_a_message_and_could_not_be_whole_is_data(tmp_path: Path) -> None:
    longer = pack(1, 2, "/inner", bytes(1000))[:-990]
    path = tmp_path / "a.lcmlog"
    path.write_bytes(pack(0, 1, "/upload", longer) + b"garbage")
    with LogReader(path) as reader:
        assert raw(reader.events()) == [(1, "/upload", longer)]
        assert [damage.length for damage in reader.damages] == [7]


def test_an_event_larger_than_any_message_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.lcmlog"
    with path.open("wb") as file:
        file.write(pack(0, 1, "/x", b"before") + HEADER.pack(SYNC, 1, 2, 2, MAX_MESSAGE + 1) + b"/y")
        file.seek(MAX_MESSAGE + 1, 1)  # a hole, which is zeros
        file.write(pack(2, 3, "/x", bytes(MAX_MESSAGE)))
    with LogReader(path) as reader:
        assert raw(reader.events()) == [(1, "/x", b"before"), (3, "/x", bytes(MAX_MESSAGE))]
        assert list(map(str, reader.damages)) == [
            f"{MAX_MESSAGE + 1 + HEADER.size + 2} bytes at {HEADER.size + 8}: an event larger than any message"
        ]


def test_a_damaged_length_larger_than_any_message_swallows_nothing(tmp_path: Path) -> None:
    rest = pack(1, 2, "/x", bytes(MAX_MESSAGE)) + pack(2, 3, "/x", b"after")
    path = tmp_path / "a.lcmlog"
    path.write_bytes(HEADER.pack(SYNC, 0, 1, 2, len(rest)) + b"/x" + rest)
    with LogReader(path) as reader:
        assert raw(reader.events()) == [(2, "/x", bytes(MAX_MESSAGE)), (3, "/x", b"after")]
        assert [(damage.offset, damage.length) for damage in reader.damages] == [(0, HEADER.size + 2)]


def test_behind_damage_an_event_without_data_is_one(tmp_path: Path) -> None:
    path = tmp_path / "a.lcmlog"
    path.write_bytes(b"garbage" + pack(7, 1, "/empty", b""))
    with LogReader(path) as reader:
        assert raw(reader.events()) == [(1, "/empty", b"")]


@pytest.mark.slow
@pytest.mark.parametrize("data", [b"", b"\0", b"not a log at all" * 1000, SYNC_BYTES * 50_000])
def test_what_is_no_log_has_no_events(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a"
    path.write_bytes(data)
    with LogReader(path) as reader:
        assert list(reader.events()) == []
        assert reader.damaged_bytes == len(data)
