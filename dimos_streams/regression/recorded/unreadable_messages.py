"""The messages of a log that can't be read as what the modules under test take and give."""

from __future__ import annotations

from collections.abc import Iterator, Set

from dimos_streams.errors import MessageError
from dimos_streams.messages import registry
from dimos_streams.messages.codec import decode, split_channel
from dimos_streams.recording.format import LogEvent


class UnreadableMessages:
    """Counts the messages on channels that are none of the channel's type, as damage inside a message leaves them, or
    a type whose definition was changed since."""

    def __init__(self, inputs: Set[str], outputs: Set[str] = frozenset()) -> None:
        self._outputs = outputs
        self._channels = inputs | outputs
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
        """The inputs of which nothing can be read, without which nothing is tested; empty if there are none."""
        deaf = self._counts.keys() - self._readable - self._outputs
        return "; ".join(self._of_all(name) for name in sorted(deaf))

    def remarks(self) -> Iterator[str]:
        """Yield a line for each channel of which only some messages can't be read, and for each such output: what is
        compared with it differs for that reason."""
        for name in sorted(self._counts):
            if name in self._readable:
                yield f"messages of {name} that can't be read: {self._counts[name]}, first: {self._reasons[name]}"
            elif name in self._outputs:
                yield self._of_all(name)

    def _of_all(self, channel: str) -> str:
        return f"no message of {channel} can be read: {self._reasons[channel]}"
