"""Inputs of a log that can't be read: nothing is tested without all of a channel, and some are only told of."""

from __future__ import annotations

from dimos_streams.messages.codec import channel_name, encode
from dimos_streams.messages.geometry_msgs import Twist
from dimos_streams.recording.format import LogEvent
from dimos_streams.regression.recorded.unreadable_messages import UnreadableMessages
from tests.recording.logs import START

DEAF, DAMAGED, OTHER = (channel_name(name, Twist) for name in ("/a", "/b", "/c"))


def test_only_a_channel_of_which_nothing_can_be_read_is_a_problem() -> None:
    inputs = UnreadableMessages({DEAF, DAMAGED})
    good = encode(Twist())
    for number, (channel, data) in enumerate(
        [(DEAF, b"x"), (DEAF, b"y"), (DAMAGED, good[:-1]), (DAMAGED, good), (OTHER, b"z")]
    ):
        inputs.add(LogEvent(number, START, channel, data, 0))
    assert inputs.problem().startswith(f"no message of {DEAF} can be read: ")
    assert DAMAGED not in inputs.problem()
    (remark,) = inputs.remarks()
    assert remark.startswith(f"messages of {DAMAGED} that can't be read: 1, first: ")


def test_an_output_of_which_nothing_can_be_read_is_told_of() -> None:
    messages = UnreadableMessages({OTHER}, {DEAF})
    messages.add(LogEvent(0, START, DEAF, b"x", 0))
    assert not messages.problem()
    (remark,) = messages.remarks()
    assert remark.startswith(f"no message of {DEAF} can be read: ")
