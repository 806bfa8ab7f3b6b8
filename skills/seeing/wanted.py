"""The wishes that detectors are told: descriptions of people and things."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field

from dimos_streams.errors import SkillError
from dimos_streams.messages.detections import MAX_LABEL
from dimos_streams.messages.std_msgs import String
from dimos_streams.module import Module
from dimos_streams.streams import Out

ANNOUNCE_S = 1.0

Description = Annotated[str, Field(max_length=MAX_LABEL)]
"""What somebody wants to see, as long as a label at most. How well a longer one fits is not remembered: ten calls
that compare such with all that is seen, picture by picture, leave their process no time for anything else."""


def cleaned_descriptions(descriptions: Sequence[str], argument: str) -> list[str]:
    """Return the descriptions without blanks and repetitions. Raises ``SkillError`` that names the argument if none
    is left."""
    cleaned = list(dict.fromkeys(text.strip() for text in descriptions if text.strip()))
    if not cleaned:
        raise SkillError(f"{argument} must say what to look out for, not {list(descriptions)!r}")
    return cleaned


@contextlib.contextmanager
def wanting(module: Module, out: Out[String], descriptions: Sequence[str]) -> Iterator[None]:
    """Publish once a second what detectors are to look for."""

    async def announce() -> None:
        while True:
            out.publish(String(data=json.dumps(list(descriptions))))
            await asyncio.sleep(ANNOUNCE_S)

    task = module.spawn(announce(), name="wanting")
    try:
        yield
    finally:
        task.cancel()
