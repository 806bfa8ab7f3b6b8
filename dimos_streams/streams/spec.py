"""One stream as a module class declares it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dimos_streams.messages.base import Message


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
    """Its messages may come from outside of the blueprint: it is connected in any case."""
