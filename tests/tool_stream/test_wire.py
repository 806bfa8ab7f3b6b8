"""The short way between events and bytes against the general codec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dimos_streams.common.json.writing import json_text
from dimos_streams.common.names import MAX_NAME
from dimos_streams.common.secrets import redacted, redacted_data
from dimos_streams.errors import MessageError, SkillError
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import ToolStreamEvent
from dimos_streams.tool_stream.event import EVENT_TYPES, MAX_SEQ, MAX_UTIME, MIN_UTIME, ToolEvent
from dimos_streams.tool_stream.protocol.bounds import MAX_EVENT, MAX_PAYLOAD
from dimos_streams.tool_stream.wire.layout import call_id_of
from dimos_streams.tool_stream.wire.packing import pack_event
from dimos_streams.tool_stream.wire.unpacking import EventUnpacker, unpack_event

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_NAME = st.text(st.characters(categories=["L", "N", "P"]), max_size=10)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=5,
)
_EVENTS = st.builds(
    ToolEvent,
    utime=st.integers(MIN_UTIME, MAX_UTIME),
    call_id=st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._~:-]{0,9}", fullmatch=True),
    seq=st.integers(1, MAX_SEQ),
    type=st.sampled_from(sorted(EVENT_TYPES - {"close"})),
    module=_NAME,
    skill=_NAME,
    caller=_NAME,
    text=_TEXT,
    data=st.dictionaries(_TEXT, _VALUES, max_size=3),
)

_ALIKE = st.builds(
    ToolEvent,
    utime=st.integers(0, 3),
    call_id=st.sampled_from(("c", "c", "c", "cc")),
    seq=st.integers(1, 3),
    type=st.sampled_from(("open", "update", "update", "progress")),
    module=st.sampled_from(("m", "m", "n", "mm")),
    skill=st.just("s"),
    caller=st.sampled_from(("", "you")),
    text=st.sampled_from(("", "é", "text")),
    data=st.sampled_from(({}, {"a": 1})),
)


def _read(unpack: Callable[[bytes], ToolEvent], packed: bytes) -> ToolEvent | str:
    try:
        return unpack(packed)
    except MessageError as error:
        return str(error)


def _message(event: ToolEvent) -> ToolStreamEvent:
    names = ("utime", "call_id", "seq", "type", "module", "skill", "caller", "text")
    return ToolStreamEvent(**{name: getattr(event, name) for name in names}, data_json=json_text(event.data))


def _published(event: ToolEvent) -> ToolEvent:
    """The event without secrets: a text like ``://0@`` is a URL with a user."""
    return replace(event, text=redacted(event.text), data=redacted_data(event.data))


@pytest.mark.slow
@given(_EVENTS)
def test_the_bytes_are_the_codecs_and_give_the_event_again(event: ToolEvent) -> None:
    packed = pack_event(event)
    assert packed == encode(_message(_published(event)))
    assert unpack_event(packed) == _published(event)


@pytest.mark.slow
@given(_EVENTS, st.data())
def test_damaged_bytes_are_an_event_or_an_error(event: ToolEvent, data: st.DataObject) -> None:
    packed = bytearray(pack_event(event))
    cut = data.draw(st.integers(0, len(packed)))
    for _ in range(data.draw(st.integers(0, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    for damaged in (bytes(packed), bytes(packed[:cut]), bytes(packed) + b"\0"):
        try:
            found = unpack_event(damaged)
        except MessageError:
            continue
        assert unpack_event(pack_event(found)) == _published(found)


@pytest.mark.slow
@given(_EVENTS, st.data())
def test_bytes_that_are_missing_or_too_many_are_an_error(event: ToolEvent, data: st.DataObject) -> None:
    packed = pack_event(event)
    with pytest.raises(MessageError, match="bytes too many"):
        unpack_event(packed + data.draw(st.binary(min_size=1, max_size=5)))
    with pytest.raises(MessageError):
        unpack_event(packed[: data.draw(st.integers(0, len(packed) - 1))])


@pytest.mark.slow
@given(st.lists(_ALIKE, max_size=8), st.data())
def test_who_remembers_a_call_reads_each_event_as_who_does_not(events: list[ToolEvent], data: st.DataObject) -> None:
    unpacker = EventUnpacker()
    for event in events:
        packed = bytearray(pack_event(event))
        for _ in range(data.draw(st.integers(0, 1))):
            packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
        packed = packed[: data.draw(st.sampled_from((len(packed), len(packed), len(packed) // 2)))]
        assert _read(unpacker.unpack, bytes(packed)) == _read(unpack_event, bytes(packed))


def test_names_that_change_within_a_call_are_read() -> None:
    unpacker = EventUnpacker()
    for name in ("m", "n", "m" * MAX_NAME, "é" * MAX_NAME, "m"):
        for type in ("update", "progress", "update"):
            fields = {"utime": 1, "call_id": "c", "seq": 1, "type": type, "module": name}
            event = unpacker.unpack(encode(ToolStreamEvent(**fields)))  # type: ignore[arg-type]
            assert (event.type, event.module) == (type, name)
    with pytest.raises(MessageError, match="type is 'updat\\\\n'"):
        unpacker.unpack(encode(ToolStreamEvent(utime=1, call_id="c", seq=1, type="updat\n")))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"type": "gap"}, "type is 'gap'"),
        ({"seq": 0}, "seq 0"),
        ({"seq": MAX_SEQ + 1}, "seq"),
        ({"call_id": ""}, "call ''"),
        ({"call_id": "../x"}, "call '../x'"),
        ({"module": "m" * 201}, "a name"),
        ({"skill": "a\nb"}, "a name"),
        ({"data_json": "[]"}, "JSON of type list"),
        ({"data_json": '{"a": NaN}'}, "bad JSON"),
        ({"caller": "c" * 201}, "a name"),
        ({"data_json": '{"_instance": 3}'}, "its instance is '3'"),
        ({"data_json": f'{{"_instance": "{"i" * 201}"}}'}, "its instance is 'iii"),
        ({"type": "close"}, "outcome is None"),
        ({"type": "close", "data_json": '{"outcome": ["failed"]}'}, "outcome"),
        ({"text": "x" * MAX_EVENT}, f"bytes; {MAX_EVENT} are possible"),
    ],
)
def test_what_no_publisher_sends(changed: dict[str, object], why: str) -> None:
    fields: dict[str, object] = {"utime": 1, "call_id": "c", "seq": 1, "type": "update", **changed}
    with pytest.raises(MessageError, match=why):
        unpack_event(encode(ToolStreamEvent(**fields)))  # type: ignore[arg-type]


def test_an_event_that_is_too_large_is_none_of_a_call_that_is_known_either() -> None:
    fields = {"utime": 1, "call_id": "c", "seq": 1, "type": "update", "module": "m"}
    unpacker = EventUnpacker()
    unpacker.unpack(encode(ToolStreamEvent(**fields)))  # type: ignore[arg-type]
    with pytest.raises(MessageError, match="are possible"):
        unpacker.unpack(encode(ToolStreamEvent(**fields, text="x" * MAX_EVENT)))  # type: ignore[arg-type]


def test_names_are_looked_at_in_each_event() -> None:
    good = {"utime": 1, "call_id": "c", "seq": 1, "type": "update", "module": "m", "skill": "s", "caller": "x"}
    for changed, why in (({"module": "m\n"}, "a name"), ({"type": "gap"}, "type is 'gap'"), ({"caller": "y"}, "")):
        assert unpack_event(encode(ToolStreamEvent(**good))).module == "m"  # type: ignore[arg-type]
        packed = encode(ToolStreamEvent(**{**good, **changed}))  # type: ignore[arg-type]
        if why:
            with pytest.raises(MessageError, match=why):
                unpack_event(packed)
        else:
            assert unpack_event(packed).caller == "y"


@pytest.mark.parametrize(
    ("text", "data", "why"),
    [
        ("", {"a": object()}, "not JSON"),
        ("x" * (MAX_PAYLOAD - 1), {}, f"{MAX_PAYLOAD + 1} bytes"),
    ],
)
def test_what_cannot_be_sent(text: str, data: dict[str, object], why: str) -> None:
    event = ToolEvent(
        utime=1, call_id="c", seq=1, type="update", module="m", skill="s", caller="c", text=text, data=data
    )
    with pytest.raises(SkillError, match=why):
        pack_event(event)


@pytest.mark.feature("A5")
def test_halves_of_characters_are_repaired_on_their_way() -> None:
    data = {"found": "\ud83d", "joined": ["\ud83d\ude00"]}
    event = ToolEvent(
        utime=1, call_id="c", seq=1, type="update", module="m", skill="s", caller="c", text="a\ud83d", data=data
    )
    reported = unpack_event(pack_event(event))
    assert (reported.text, reported.data) == ("a\ufffd", {"found": "\ufffd", "joined": ["😀"]})
    foreign = ToolStreamEvent(utime=1, call_id="c", seq=1, type="update", data_json='{"a": "\\ud83d"}')
    assert unpack_event(encode(foreign)).data == {"a": "\ufffd"}


def test_the_largest_event() -> None:
    name = "n" * MAX_NAME
    event = ToolEvent(
        utime=1, call_id=name, seq=MAX_SEQ, type="update", module=name, skill=name, caller=name,
        text="x" * (MAX_PAYLOAD - 10), data={"a": 1.25}, instance=name,
    )  # fmt: skip
    packed = pack_event(event)
    found = unpack_event(packed)
    assert (found, found.instance) == (event, name)
    assert call_id_of(packed) == name


def test_the_call_of_an_event_is_read_without_the_rest() -> None:
    event = ToolEvent(utime=1, call_id="call-é", seq=1, type="open", module="", skill="", caller="", text="")
    packed = pack_event(event)
    assert call_id_of(packed) == "call-é"
    behind = packed.index("call-é".encode()) + len("call-é".encode())
    assert call_id_of(packed[: behind + 1]) == "call-é"
    for damaged in (packed[:behind], packed[:17], b"\0" + packed[1:], packed.replace("é".encode(), b"\xff\xff"), b""):
        assert call_id_of(damaged) == ""
    large = ToolEvent(utime=1, call_id="c", seq=1, type="open", module="", skill="", caller="", text="")
    whole = pack_event(large)
    assert call_id_of(whole + b"\0" * (MAX_EVENT - len(whole))) == "c"
    assert call_id_of(whole + b"\0" * (MAX_EVENT - len(whole) + 1)) == ""
