"""Events in the form in which HTTP serves them."""

from __future__ import annotations

from typing import Any

import pytest

from dimos_streams.common.json.writing import json_text
from dimos_streams.tool_stream.event import MAX_SEQ, MAX_UTIME, MIN_UTIME, SERVED_FIELDS, ToolEvent
from dimos_streams.tool_stream.opening import opening_of

_FIELDS: dict[str, Any] = {
    "utime": 1, "call_id": "c", "seq": 2, "type": "update", "module": "m", "skill": "s", "caller": "x",
    "text": "hello", "data": {"number": 1},
}  # fmt: skip


def test_an_event_is_read_from_what_is_served_of_it() -> None:
    event = ToolEvent(**_FIELDS)
    assert ToolEvent.from_dict(event.to_dict()) == event
    assert ToolEvent.from_dict(_FIELDS) == event, "what is left out has its default"


def test_the_fields_that_are_served_are_those_that_are_read() -> None:
    assert list(ToolEvent(**_FIELDS, robot="r").to_dict()) == list(SERVED_FIELDS)


@pytest.mark.parametrize(
    ("said", "on_loss"),
    [({"on_loss": "continue"}, "continue"), ({"on_loss": "stop"}, "stop"), ({"on_loss": True}, "stop")],
)
def test_only_a_call_that_says_so_goes_on_when_nobody_answers_for_it(said: dict[str, Any], on_loss: str) -> None:
    assert opening_of(said).on_loss == on_loss


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"seq": "2"}, "seq is '2'"),
        ({"seq": True}, "seq is True; valid: 1 to "),
        ({"seq": 0}, "seq is 0"),
        ({"seq": MAX_SEQ + 1}, "seq is "),
        ({"utime": MIN_UTIME - 1}, f"valid: {MIN_UTIME} to "),
        ({"utime": MAX_UTIME + 1}, "utime is "),
        ({"utime": False}, "utime is False"),
        ({"type": "gap", "seq": -1}, "seq is -1; valid: 0 to "),
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


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (2 * 10**308, "null"),
        (10**309, "null"),
        ({"a": [-(10**400)]}, '{"a":[null]}'),
        ([10**5000], "[null]"),
        ({"Δ": 10**400, "half": "\ud83d"}, '{"Δ":null,"half":"\ufffd"}'),
        ({"a": "9" * 400, "b": 10**308}, f'{{"a":"{"9" * 400}","b":{10**308}}}'),
    ],
    ids=[
        "as many digits as may be",
        "number",
        "within",
        "very large",
        "and half a character",
        "digits alone are no number",
    ],
)
def test_numbers_that_readers_would_refuse_are_sent_as_none(value: Any, shown: str) -> None:
    assert json_text(value) == shown


def test_such_a_number_is_found_wherever_it_stands() -> None:
    for before in range(320):
        assert json_text(["x" * before, 10**308]) == f'["{"x" * before}",{10**308}]'
        assert json_text(["x" * before, 10**309]) == f'["{"x" * before}",null]'
