"""The module that waits for somebody or something to come into view."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from dimos_streams.common.readable.listed import listed
from dimos_streams.errors import SkillError
from dimos_streams.live_settings import Live
from dimos_streams.messages.std_msgs import String
from dimos_streams.messages.vision_msgs import Detection2DArray
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.skill import Call, skill
from dimos_streams.skills.continuation import Then
from dimos_streams.skills.own_calls import OwnCalls
from dimos_streams.skills.seeing.frames import DetectionFrame
from dimos_streams.skills.seeing.labels import watch_labels
from dimos_streams.skills.seeing.lookout import Candidate, Lookout, candidates
from dimos_streams.skills.seeing.sighting import sightings_of
from dimos_streams.skills.seeing.wanted import Description, cleaned_descriptions, wanting
from dimos_streams.streams import In, Out

SAMPLE = {"label": "person", "bbox": [0.0, 0.0, 10.0, 20.0]}
"""A stand-in for a match, with which ``then`` is checked before there is one."""


class LookOutConfig(ModuleConfig):
    """Settings for believing a match and for reporting a frozen camera."""

    confidence: Annotated[float, Live] = Field(0.5, ge=0.0, le=1.0)
    """The least score of a detection that counts, unless a call says another."""
    confirm_frames: Annotated[int, Live] = Field(2, ge=1, le=10)
    """The number of frames in a row that must show the match."""
    frozen_after_s: float = Field(3.0, gt=0.0)
    """The time, in seconds, without a new frame after which that is reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookOutReport:
    """The result of a lookout."""

    matched: bool
    descriptions: tuple[str, ...]
    """The descriptions that were looked for."""
    description: str | None = None
    """The one that matched."""
    label: str | None = None
    score: float | None = None
    """The trust of the detector in its label, 0..1."""
    bbox: tuple[float, float, float, float] | None = None
    """Left, top, right, bottom in pixels of the colour image."""
    distance_m: float | None = None
    """Metres to it, or None if depth is unknown."""
    continued_as: str | None = None
    """Id of the call that ``then`` began."""
    continued_with: str | None = None
    """The skill of that call."""

    def __str__(self) -> str:
        if not self.matched:
            return f"The time is over: {listed(self.descriptions, 'or')} did not come into view"
        where = "" if self.distance_m is None else f", {self.distance_m:.1f} m away"
        then = "" if self.continued_with is None else f"; went on with {self.continued_with}"
        return f"Saw {self.label} (matches {self.description!r}){where}{then}"


class LookOut(Module):
    """Waits until what a detector sees matches a description."""

    config: LookOutConfig
    shared_outputs = frozenset({"wanted_descriptions"})
    detections: In[Detection2DArray]
    wanted_descriptions: Out[String]

    @classmethod
    def longest_gaps(cls, config: LookOutConfig) -> Mapping[str, float]:
        """See ``Module``."""
        return {"detections": config.frozen_after_s}

    async def start(self) -> None:
        """See ``Module``."""
        self._calls = OwnCalls()
        watch_labels(self, self.detections)

    @skill(tags={"safe", "sensing"}, concurrent=True)
    async def look_out_for(
        self,
        call: Call,
        descriptions: Annotated[list[Description], Field(min_length=1, max_length=16)],
        timeout_s: Annotated[float, Field(gt=0.0)] = 60.0,
        confidence: Annotated[float | None, Field(ge=0.0, le=1.0)] = None,
        then: Then | None = None,
    ) -> LookOutReport:
        """Watch the camera until somebody who matches one of the descriptions comes into view, and report it.

        Answers at once and goes on in the background. Several lookouts may run at the same time. With `then`,
        another skill is started as soon as there is a match, if you may call that skill then.

        Args:
            descriptions: What to look out for, e.g. ["a man in red", "somebody with a hat"]; any of them ends it.
            timeout_s: Seconds after which to give up.
            confidence: How sure the detector must be, 0 to 1. Leave it out unless there is a reason.
            then: A skill to start on a match, e.g. {"skill": "follow_person", "arguments":
                {"description": "$label"}}.
        """
        wanted = cleaned_descriptions(descriptions, "descriptions")
        what = listed(wanted, "or")
        with self._calls.running(call, f"looking out for {what}"):
            if then is not None:
                await call.skills.check(then.skill, then.arguments_with({**SAMPLE, "description": wanted[0]}))
            await call.update(f"Looking out for {what}", event="started", descriptions=wanted)
            sure = self.config.confidence if confidence is None else confidence
            report = await self._watch(call, wanted, timeout_s, sure)
            if not report.matched or then is None:
                return report
            return await _continue(call, report, then)

    @skill(tags={"safe", "stop"})
    async def stop_looking_out(self, call: Call) -> str:
        """Stop all lookouts that are running."""
        ended = await self._calls.end(call, "stop_looking_out was called")
        return f"Stopped {listed(ended)}" if ended else "No lookout was running"

    async def _watch(self, call: Call, wanted: list[str], timeout_s: float, confidence: float) -> LookOutReport:
        """Wait for the match and report it, or for the end of the time."""
        report = LookOutReport(matched=False, descriptions=tuple(wanted))
        try:
            with wanting(self, self.wanted_descriptions, wanted):
                async with asyncio.timeout(timeout_s):
                    report = await self._first_match(call, wanted, confidence)
        except TimeoutError:
            return report
        found = {"description": report.description, "label": report.label, "bbox": report.bbox}
        await call.update(str(report), event="match", score=report.score, distance_m=report.distance_m, **found)
        return report

    async def _first_match(self, call: Call, wanted: list[str], confidence: float) -> LookOutReport:
        """The first match that holds for enough frames in a row. Says so if frames stop coming."""

        async def report_blindness(blind: bool) -> None:
            if blind:
                await call.update("There are no new detections. Still looking out", event="frozen")

        def find(frame: DetectionFrame) -> list[Candidate]:
            return candidates(sightings_of(frame.message), wanted, confidence)

        found, _ = await Lookout(self, report_blindness).next(find)
        return _report(found, wanted)


def _report(found: Candidate, wanted: list[str]) -> LookOutReport:
    left, top, right, bottom = (round(value, 1) for value in found.sighting.box)
    point = found.sighting.point
    return LookOutReport(
        matched=True,
        descriptions=tuple(wanted),
        description=found.description,
        label=found.match.label,
        score=round(found.match.score, 3),
        bbox=(left, top, right, bottom),
        distance_m=None if point is None else round(abs(point), 2),
    )


async def _continue(call: Call, report: LookOutReport, then: Then) -> LookOutReport:
    """Start the next skill. Raises ``SkillError`` that names the match too if it can't be started."""
    values = {"label": report.label, "description": report.description, "bbox": list(report.bbox or ())}

    async def report_match() -> None:
        await call.update(f"Waits until {then.skill} may begin", event="waits", skill=then.skill)

    try:
        call_id = await call.skills.start(then.skill, then.arguments_with(values), on_wait=report_match)
    except SkillError as error:
        raise SkillError(f"{report}, but {then.skill!r} could not be started: {error}") from error
    return replace(report, continued_as=call_id, continued_with=then.skill)
