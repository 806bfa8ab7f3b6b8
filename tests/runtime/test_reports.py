"""A worker's reports: whole, in order, and without either end waiting for the other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dimos_streams.runtime.processes.reports import ReportReader, ReportWriter

LONG = {"kind": "failed", "text": "x" * 900_000}
SHORT = {"kind": "ready", "module": "talker"}


@pytest.fixture
def ends() -> Iterator[tuple[Connection, Connection]]:
    ours, theirs = Pipe()
    os.set_blocking(theirs.fileno(), False)
    with ours, theirs:
        yield ours, theirs


def test_a_report_that_does_not_fit_is_read_when_all_of_it_has_come(ends: tuple[Connection, Connection]) -> None:
    ours, theirs = ends
    reader, writer = ReportReader(ours), ReportWriter(theirs)
    writer.send(LONG)
    writer.send(SHORT)
    came = list(reader.read())
    assert came == [], "the pipe has only a part of it"
    while not writer.flush():
        came += reader.read()
    came += reader.read()
    assert came == [LONG, SHORT]


def test_for_a_supervisor_that_does_not_read_no_more_than_so_much_waits(ends: tuple[Connection, Connection]) -> None:
    ours, theirs = ends
    reader, writer = ReportReader(ours), ReportWriter(theirs)
    writer.send(LONG)
    with pytest.raises(BufferError, match="a supervisor that does not read"):
        writer.send(LONG)
    came = list(reader.read())
    while not writer.flush():
        came += reader.read()
    writer.send(SHORT)
    came += reader.read()
    assert came == [LONG, SHORT], "what was dropped tears nothing"


def test_what_came_before_the_end_is_read(ends: tuple[Connection, Connection]) -> None:
    ours, theirs = ends
    writer, reading = ReportWriter(theirs), ReportReader(ours).read()
    writer.send(SHORT)
    theirs.close()
    assert next(reading) == SHORT
    with pytest.raises(EOFError):
        next(reading)


def test_a_supervisor_that_has_gone_is_an_error(ends: tuple[Connection, Connection]) -> None:
    ours, theirs = ends
    ours.close()
    with pytest.raises(BrokenPipeError):
        ReportWriter(theirs).send(SHORT)


@given(texts=st.lists(st.text()), cuts=st.lists(st.integers(1, 40)))
def test_however_the_bytes_are_cut_the_reports_are_the_same(texts: list[str], cuts: list[int]) -> None:
    ours, theirs = Pipe()
    middle, end = Pipe()
    with ours, theirs, middle, end:
        writer, reader, came = ReportWriter(theirs), ReportReader(end), []
        for text in texts:
            writer.send({"text": text})
        os.set_blocking(ours.fileno(), False)
        sizes = iter(cuts)
        while texts and os.write(middle.fileno(), os.read(ours.fileno(), next(sizes, 1 << 16))):
            came += [report["text"] for report in reader.read()]
            if len(came) == len(texts):
                break
        assert came == texts
