"""The clock of a recording, under any order of commands."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from dimos_streams.dashboard.serving import FILES
from dimos_streams.viewer.transport import FASTEST, SLOWEST, Transport
from dimos_streams.viewer.transport_commands import PausePlayback, Play, Seek, Speed, StepPlayback, transport_command

BEGIN, END = 1_600_000_000_000_000, 1_600_000_060_000_000


class Commands(RuleBasedStateMachine):
    """A model that adds up what passes, beside the transport."""

    def __init__(self) -> None:
        super().__init__()
        self.transport = Transport(BEGIN, END)
        self.now = 100.0
        self.expected = float(BEGIN)
        self.playing = False
        self.speed = 1.0

    @rule(seconds=st.floats(0, 100))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        if self.playing:
            self.expected = min(END, self.expected + seconds * self.speed * 1e6)
            self.playing = self.expected < END

    @rule()
    def play(self) -> None:
        self.transport.play(self.now)
        self.expected = BEGIN if self.expected >= END else self.expected
        self.playing = True

    @rule()
    def pause(self) -> None:
        self.transport.pause(self.now)
        self.playing = False

    @rule(speed=st.floats(SLOWEST / 4, FASTEST * 4))
    def set_speed(self, speed: float) -> None:
        self.transport.set_speed(self.now, speed)
        self.speed = min(FASTEST, max(SLOWEST, speed))

    @rule(utime=st.integers(BEGIN - 10**8, END + 10**8))
    def seek(self, utime: int) -> None:
        self.transport.seek(self.now, utime)
        self.expected = min(END, max(BEGIN, utime))
        self.playing = self.playing and self.expected < END

    @invariant()
    def it_is_where_it_should_be(self) -> None:
        at = self.transport.at(self.now)
        assert BEGIN <= at <= END
        assert at == pytest.approx(self.expected, abs=200)
        if abs(self.expected - END) > 200:
            assert self.transport.playing == self.playing
        self.expected, self.playing = float(at), self.transport.playing


TestCommands = Commands.TestCase
TestCommands.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_a_recording_of_one_moment_does_not_play() -> None:
    transport = Transport(BEGIN, BEGIN)
    transport.play(1.0)
    assert (transport.at(5.0), transport.playing) == (BEGIN, False)


def test_the_page_asks_for_what_there_is_and_for_nothing_else() -> None:
    script = FILES["transport/link.js"].read_text(encoding="utf-8")
    sent = re.findall(r"\{ command: ([^}]+?) \}", script)
    known = {
        get_args(kind.model_fields["command"].annotation)[0]: kind
        for kind in (Play, PausePlayback, Speed, Seek, StepPlayback)
    }
    asked = set()
    for text in sent:
        names, _, rest = text.partition(",")
        fields = {field.partition(":")[0].strip() for field in rest.split(",") if field.strip()}
        for name in re.findall(r'"(\w+)"', names):
            assert fields <= known[name].model_fields.keys()
            asked.add(name)
    assert asked == set(known)


def test_commands_are_read() -> None:
    assert transport_command('{"command": "seek", "utime": 5}') == Seek(command="seek", utime=5)
    assert transport_command('{"command": "step"}') == StepPlayback(command="step", back=False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "send text, not bytes"),
        ("{", "not JSON"),
        ("[]", "valid: play, pause"),
        ('{"command": "fly"}', "fly"),
        ('{"command": "speed", "speed": 99}', "at most 16"),
        ('{"command": "speed", "speed": NaN}', "valid: play"),
        ('{"command": "seek", "utime": 1e99}', "utime"),
        ('{"command": "play", "loud": true}', "loud"),
        ('{"command": "pause", "command": "play"}', "several members of the name 'command'"),
    ],
)
def test_what_is_no_command_is_refused_with_what_would_be_valid(text: str | None, said: str) -> None:
    with pytest.raises(ValueError, match="valid: ") as refused:
        transport_command(text)
    assert said in str(refused.value)
