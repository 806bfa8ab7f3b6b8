"""What is read of a message before it is decoded."""

from __future__ import annotations

import pytest

from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCall, SkillCancel
from dimos_streams.tool_stream.addressee import first_texts
from dimos_streams.tool_stream.wire.layout import may_be_of
from dimos_streams.tool_stream.wire.packing import EventPacker

_CALL = SkillCall(call_id="call", module="mödule", skill="", caller="c", parent="p", arguments_json="{}")


def test_the_first_texts_are_those_of_the_message() -> None:
    data = encode(_CALL)
    assert first_texts(SkillCall, data, 5) == ("call", "mödule", "", "c", "p")
    assert first_texts(SkillCall, data, 1) == ("call",)
    assert first_texts(SkillCancel, data, 1) is None, "it is of another type"


def test_a_damaged_message_is_left_to_who_says_what_is_wrong() -> None:
    data = encode(_CALL)
    end = 8 + 8 + (4 + len("call") + 1) + (4 + len("mödule".encode()) + 1)
    assert first_texts(SkillCall, data[:end], 2) == ("call", "mödule")
    assert all(first_texts(SkillCall, data[:length], 2) is None for length in range(end))
    for number in (b"\xff\xff\xff\xff", b"\0\xff\0\0"):
        assert first_texts(SkillCall, data[:16] + number + data[20:], 2) is None
    assert first_texts(SkillCall, data.replace(b"call\0", b"\xff\xfe\xfd\xfc\0"), 1) is None


@pytest.mark.parametrize("instance", ["own", 'in"st', "ö\\u006f"])
def test_an_event_says_its_instance_at_its_end(instance: str) -> None:
    for given in ({}, {"a": 1}, {"_instance": "other"}):
        packed = EventPacker("call", "m", "s", "c", instance).pack(1, 1, "open", "text", given)
        assert may_be_of(packed, instance)
        assert not may_be_of(packed, "other")
        assert may_be_of(packed, ""), "that is nobody's"
