"""Events in the form in which HTTP serves them."""

from __future__ import annotations

from typing import Any

import pytest

from dimos_streams.tool_stream.event import ToolEvent

_FIELDS: dict[str, Any] = {
    "utime": 1, "call_id": "c", "seq": 2, "type": "update", "module": "m", "skill": "s", "caller": "x",
    "text": "hello", "data": {"number": 1},
}  # fmt: skip


def test_an_event_is_read_from_what_is_served_of_it() -> None:
    event = ToolEvent(**_FIELDS)
    assert ToolEvent.from_dict(event.to_dict()) == event
    assert ToolEvent.from_dict(_FIELDS) == event, "what is left out has its default"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"seq": "2"}, "seq is '2'"),
        ({"data": []}, r"data is \[\]"),
        ({"robot": 3}, "robot is 3"),
        ({"type": "begin"}, "type is 'begin'"),
        ({"type": "close", "data": {"outcome": ["lost"]}}, r"outcome is \['lost'\]"),
        ({"color": "red"}, "color"),
    ],
)
def test_what_is_no_event(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        ToolEvent.from_dict({**_FIELDS, **changed})
