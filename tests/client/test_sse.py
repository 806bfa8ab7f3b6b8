"""The parser against the rules of the WHATWG event stream format, cut anywhere."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dimos_streams.client.event_stream.sse_parser import MAX_RETRY_MS, SseEvent, SseParser


def parse(*pieces: bytes, max_event_bytes: int = 1 << 20) -> list[SseEvent]:
    parser = SseParser(max_event_bytes=max_event_bytes)
    return [event for piece in pieces for event in parser.feed(piece)]


def reference(stream: bytes) -> list[SseEvent]:
    """The rules applied to a whole stream, as plainly as they are written down."""
    text = stream.removeprefix(b"\xef\xbb\xbf")
    lines = re.split(rb"\r\n|\r|\n", text)[:-1]
    events: list[SseEvent] = []
    data: list[str] = []
    kind = last_id = ""
    for line in lines:
        name, _, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        word = value.decode(errors="replace")
        if not line:
            if data:
                events.append(SseEvent(kind or "message", "\n".join(data), last_id))
            data, kind = [], ""
        elif name == b"data":
            data.append(word)
        elif name == b"event":
            kind = word
        elif name == b"id" and b"\0" not in value:
            last_id = word
    return events


ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])
VALUES = st.binary(max_size=8).map(lambda value: re.sub(rb"[\r\n]", b"x", value))
FIELDS = st.sampled_from(
    [b"data", b"data:", b"data: ", b"id: ", b"event: ", b"retry: ", b": ", b"", b"other:", b"\xc3"]
)
LINES = st.tuples(FIELDS, VALUES, ENDS).map(b"".join)
BLANKS = ENDS
STREAMS = st.tuples(
    st.sampled_from([b"", b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"]), st.lists(LINES | BLANKS, max_size=12).map(b"".join)
).map(b"".join)


@st.composite
def cut_streams(draw: st.DrawFn) -> list[bytes]:
    stream = draw(STREAMS)
    cuts = sorted(draw(st.sets(st.integers(0, len(stream)))))
    return [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


@pytest.mark.slow
@given(cut_streams())
@example([b"\xef", b"\xbb", b"\xbfdata: x\r", b"\n\r", b"\n"])
def test_every_cut_gives_the_events_of_the_whole(pieces: list[bytes]) -> None:
    assert parse(*pieces) == reference(b"".join(pieces))


@pytest.mark.slow
@given(st.lists(st.binary(max_size=30), max_size=8))
def test_no_bytes_are_an_error(pieces: list[bytes]) -> None:
    assert parse(*pieces) == reference(b"".join(pieces))


@pytest.mark.slow
@given(cut_streams(), st.integers(1, 30))
def test_skipping_large_events_does_not_depend_on_the_cuts(pieces: list[bytes], limit: int) -> None:
    whole, cut = SseParser(max_event_bytes=limit), SseParser(max_event_bytes=limit)
    expected = whole.feed(b"".join(pieces))
    assert [event for piece in pieces for event in cut.feed(piece)] == expected
    assert (cut.oversized, cut.last_event_id, cut.retry_ms) == (whole.oversized, whole.last_event_id, whole.retry_ms)


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\ndata: b\n\n", [SseEvent("message", "a\nb", "")]),
        (b"data:  two spaces\n\n", [SseEvent("message", " two spaces", "")]),
        (b"data\n\n", [SseEvent("message", "", "")]),
        (b"event: x\n\n", []),
        (b"id: 7\n\ndata: a\n\n", [SseEvent("message", "a", "7")]),
        (b"id: 7\nid: 8\0\ndata: a\n\n", [SseEvent("message", "a", "7")]),
        (b"id: 7\ndata: a\n\nid\ndata: b\n\n", [SseEvent("message", "a", "7"), SseEvent("message", "b", "")]),
        (b": ping\n\nevent: e\ndata: a\n\ndata: b\n\n", [SseEvent("e", "a", ""), SseEvent("message", "b", "")]),
        (b"data: never finished\n", []),
        (b"data: line\xe2\x80\xa8separator\x0b\x85\n\n", [SseEvent("message", "line\u2028separator\x0b\ufffd", "")]),
    ],
)
def test_rules(stream: bytes, expected: list[SseEvent]) -> None:
    assert parse(stream) == expected


@pytest.mark.parametrize("field", [b"event", b"id", b"data"])
def test_a_line_ends_by_cr_also_in_an_event_of_the_usual_form(field: bytes) -> None:
    usual = b"event: a\nid: 1\ndata: b\n\n"
    stream = usual + usual.replace(field + b": ", field + b": x\rdata: ") + usual
    assert parse(stream) == reference(stream)


USUAL = st.tuples(st.sampled_from([b"1", b"", b"\xc3", b"\0", b"a\r", b"a b"]), VALUES).map(
    lambda given: b"event: tool\nid: %b\ndata: %b\n\n" % given
)


@pytest.mark.slow
@given(st.lists(USUAL | STREAMS, min_size=1, max_size=6), st.integers(20, 60), st.integers(-1, 1))
@example([b"event: a\nid: 1\ndata: b\n\n", b"event: c\nid: 2\ndata: d\n\n"], 60, 0)
@example([b"\n", b"event: a\nid: 1\ndata: b\n\n" * 2], 60, 0)
@example([b"\n", b"data: a\n", b"event: a\nid: 1\ndata: b\n\n"], 60, 0)
@example([b"\n", b"event: a\nid: 1\ndata: b\n\n"], 60, 1)
def test_an_event_alone_in_its_chunk_is_the_same_in_one_step(contents: list[bytes], limit: int, off: int) -> None:
    steps, one = SseParser(max_event_bytes=limit), SseParser(max_event_bytes=limit)
    for content in contents:
        event = one.alone(b"%X\r\n%b\r\n" % (max(0, len(content) + off), content))
        assert event is None or off == 0, "a chunk of another size"
        assert (one.feed(content) if event is None else [event]) == steps.feed(content)
        assert one.last_event_id == steps.last_event_id


def test_usual_events_take_one_step_once_the_stream_has_begun() -> None:
    parser = SseParser()
    chunk = b"1a\r\nevent: a\nid: 1\ndata: bcd\n\n\r\n"
    assert parser.alone(chunk) is None, "it may begin with a byte order mark"
    assert parser.feed(b": hello\n\n") == []
    assert parser.alone(chunk) == SseEvent("a", "bcd", "1")


def test_an_event_comes_with_its_blank_line() -> None:
    parser = SseParser()
    assert parser.feed(b"data: a\r\n") == []
    assert [event.data for event in parser.feed(b"\r")] == ["a"]
    assert parser.feed(b"\n") == []
    assert [event.data for event in parser.feed(b"data: b\n\n")] == ["b"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(b"250", 250), (b"1.5", None), (b"-1", None), (b"", None), (b"\xd9\xa1", None), (b"9" * 5000, MAX_RETRY_MS)],
)
def test_retry(value: bytes, expected: int | None) -> None:
    parser = SseParser()
    parser.feed(b"retry: " + value + b"\n")
    assert parser.retry_ms == expected


def test_an_id_counts_when_its_event_is_complete() -> None:
    parser = SseParser(last_event_id="3")
    parser.feed(b"id: 4\ndata: a\n")
    assert parser.last_event_id == "3"
    parser.feed(b"\n")
    assert parser.last_event_id == "4"


def test_a_large_event_is_skipped_and_its_id_counts() -> None:
    parser = SseParser(max_event_bytes=100)
    events = [event for _ in range(1000) for event in parser.feed(b"data: " + b"x" * 94 + b"\n")]
    events += parser.feed(b"id: 9\n\nid: 10\ndata: small\n\n")
    assert events == [SseEvent("message", "small", "10")]
    assert parser.oversized == 1


def test_an_endless_line_takes_no_memory() -> None:
    parser = SseParser(max_event_bytes=100)
    for prefix in (b"data: ", b": "):
        parser.feed(prefix)
        for _ in range(10):
            parser.feed(b"x" * 90)
        assert len(parser._line) <= 100
        parser.feed(b"\n\n")
    assert parser.oversized == 1
    assert [event.data for event in parser.feed(b"data: on\n\n")] == ["on"]
