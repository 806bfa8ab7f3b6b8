"""The messages between robots and a fleet hub."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from dimos_streams.fleet.batches import Batch, ShippedEvent, ShippedGap, encoded_batch, encoded_event, encoded_gap
from dimos_streams.fleet.commands import Command
from dimos_streams.journal.entry import encode_event
from dimos_streams.tool_stream.event import ToolEvent


def test_a_batch_of_a_journals_own_bytes_is_read_as_what_it_was_made_of() -> None:
    event = ToolEvent(
        utime=5,
        call_id="c1",
        seq=2,
        type="update",
        module="m",
        skill="s",
        caller="x",
        text='"\u0000ü',
        data={"n": 1.5},
    )
    gap = ShippedGap(offset=3, to_offset=6, gap="trimmed")
    body = encoded_batch("journal-1", "1.0", 7, [encoded_gap(gap), encoded_event(7, encode_event(event))])
    batch = Batch.model_validate_json(body)
    assert (batch.journal, batch.version, batch.sent_utime) == ("journal-1", "1.0", 7)
    assert batch.entries == [gap, ShippedEvent(offset=7, event=event.to_dict())]


@pytest.mark.parametrize("path", ["calls", "http://elsewhere/calls", "/calls\r\nX: y", "/ö", ""])
def test_a_commands_path_is_one_of_the_bridge_and_of_one_line(path: str) -> None:
    with pytest.raises(ValidationError, match="path"):
        Command(
            id=1,
            key="k",
            stream="a-random-stream-id",
            expires_at_s=1,
            asked_by="me",
            role="operator",
            method="GET",
            path=path,
        )
