"""The inputs of a log that the modules under test can't read."""

from __future__ import annotations

from collections.abc import Iterator, Set

from dimos_streams.errors import MessageError
from dimos_streams.messages import registry
from dimos_streams.messages.codec import decode, split_channel
from dimos_streams.recording.format import LogEvent


class UnreadableInputs:
    """Counts the messages on channels that are none of the channel's type, as damage inside a message leaves them, or
    a type whose definition was changed since."""

    def __init__(self, channels: Set[str]) -> None:
        self._channels = channels
        self._reasons: dict[str, str] = {}
        """The reason for the first such message, by channel."""
        self._counts: dict[str, int] = {}
        self._readable: set[str] = set()

    def add(self, event: LogEvent) -> None:
        """Count an event if its message can't be read."""
        channel = event.channel
        cls = registry.find(split_channel(channel)[1]) if channel in self._channels else None
        if cls is None:
            return
        try:
            decode(cls, event.data, channel)
        except MessageError as error:
            self._reasons.setdefault(channel, error.why)
            self._counts[channel] = self._counts.get(channel, 0) + 1
        else:
            self._readable.add(channel)

    def problem(self) -> str:
        """The channels of which nothing can be read, without which nothing is tested; empty if there are none."""
        deaf = self._counts.keys() - self._readable
        return "; ".join(f"no message of {name} can be read: {self._reasons[name]}" for name in sorted(deaf))

    def remarks(self) -> Iterator[str]:
        """Yield a line for each channel of which only some messages can't be read."""
        for name in sorted(self._counts.keys() & self._readable):
            yield f"messages of {name} that can't be read: {self._counts[name]}, first: {self._reasons[name]}"
