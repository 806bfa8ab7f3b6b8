"""One stream as a module class declares it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dimos_streams.messages.base import Message
from dimos_streams.streams.conversion import Conversion


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """One stream as a module class declares it."""

    name: str
    direction: Literal["in", "out"]
    message: type[Message]
    required: bool = False
    queue: int = 1
    on_demand: bool = False
    external: bool = False
    """True if its messages may come from outside of the blueprint: it is connected in any case."""
    also: type[Conversion[Message]] | None = None
    """The conversion that makes the input's messages of those of a second type, or None if it takes no other."""
    fault: Callable[[Message], str] | None = None
    """The test that the input's messages must pass, or None if it takes all. It returns what is wrong with one."""
    fresh: bool = False
    """True if a message with the stamp of the one before is skipped."""

    @property
    def messages(self) -> tuple[type[Message], ...]:
        """The types that it sends or takes, its own first."""
        return (self.message,) if self.also is None else (self.message, self.also.takes)
