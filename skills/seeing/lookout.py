"""Waits until what a detector sees fits one of several descriptions, for enough frames in a row."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from dimos_streams.messages.vision_msgs import Detection2DArray
from dimos_streams.skills.seeing.frames import DetectionFrame, fresh_frames
from dimos_streams.skills.seeing.sighting import Match, Sighting
from dimos_streams.streams import In


class LookerConfig(Protocol):
    """The protocol of the settings of a module that looks out."""

    @property
    def confirm_frames(self) -> int: ...
    @property
    def frozen_after_s(self) -> float: ...


class Looker(Protocol):
    """The protocol of a module that looks out."""

    @property
    def config(self) -> LookerConfig: ...
    @property
    def detections(self) -> In[Detection2DArray]: ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sighting that matches a description."""

    description: str
    sighting: Sighting
    match: Match

    @property
    def key(self) -> tuple[str, str]:
        """The part that stays the same in the next frame. Detectors that don't track leave the id empty."""
        return self.description, self.sighting.id


def candidates(seen: Sequence[Sighting], wanted: Sequence[str], confidence: float) -> list[Candidate]:
    """Return all pairs of a sighting and a description that match with at least this score, the best first."""
    pairs = ((description, sighting, sighting.match(description)) for sighting in seen for description in wanted)
    found = [
        Candidate(description, sighting, match)
        for description, sighting, match in pairs
        if match is not None and match.score >= confidence
    ]
    return sorted(found, key=lambda candidate: (-candidate.match.fit, -candidate.match.score))


class Lookout:
    """Looks out, as often as it is asked to, and tells ``report_blindness`` when frames stop coming (True) and when
    they come again (False)."""

    def __init__(self, looker: Looker, report_blindness: Callable[[bool], Awaitable[None]]) -> None:
        self._looker, self._report_blindness = looker, report_blindness
        self._blind = False

    async def next(self, find: Callable[[DetectionFrame], list[Candidate]]) -> tuple[Candidate, DetectionFrame]:
        """Return the first candidate that ``find`` finds in enough frames in a row from now on, and the last of
        these."""
        streaks: dict[tuple[str, str], int] = {}
        async with aclosing(fresh_frames(self._looker.detections, self._looker.config.frozen_after_s)) as frames:
            async for frame in frames:
                await self._see(frame)
                if frame is None:
                    streaks = {}
                    continue
                found = find(frame)
                streaks = {each.key: streaks.get(each.key, 0) + 1 for each in found}
                for each in found:
                    if streaks[each.key] >= self._looker.config.confirm_frames:
                        return each, frame
        raise AssertionError("frames never end")

    async def _see(self, frame: DetectionFrame | None) -> None:
        blind = frame is None
        if blind != self._blind:
            self._blind = blind
            await self._report_blindness(blind)
