"""``look_out_for`` against a camera that the test holds."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.bridge.module import Bridge
from dimos_streams.bus import Bus
from dimos_streams.errors import SkillError
from dimos_streams.messages.detections import MAX_LABEL
from dimos_streams.module import Module, ModuleConfig, RunContext, Services
from dimos_streams.skill import Call, skill
from dimos_streams.skills.continuation import Then
from dimos_streams.skills.follow_person import FollowPerson
from dimos_streams.skills.look_out_for import LookOut
from dimos_streams.skills.patrol import Patrol
from dimos_streams.testing import ModuleHarness
from dimos_streams.tool_stream.calling.client import BusSkillClient
from dimos_streams.tool_stream.event import Outcome
from tests.skills.detections import GREEN, RED, Camera, Seen

WANTED: Mapping[type[Module], tuple[str, str]] = {
    LookOut: ("look_out_for", "descriptions"),
    FollowPerson: ("follow_person", "description"),
    Patrol: ("patrol", "watch_for"),
}
"""The skills that are told whom to look for, and by which argument."""
FOLLOW = {"skill": "follow_person", "arguments": {"description": "$label"}}


class Clerk(Module):
    """Has a skill that takes all that a lookout can report."""

    config: ModuleConfig

    @skill
    async def take_down(self, call: Call, note: str, box: list[float]) -> str:
        """Write down who was seen where."""
        return f"{note} {box}"


@contextlib.asynccontextmanager
async def looking(
    *view: Seen, bridge: bool = False, others: tuple[type[Module], ...] = (), **config: Any
) -> AsyncIterator[Any]:
    async with ModuleHarness(LookOut, config=config) as harness:
        if bridge:
            services = Services()
            services.offer(Bus, harness.bus)  # type: ignore[type-abstract]
            await harness.add(Bridge(name="bridge", context=RunContext(services=services)))
        for other in others:
            await harness.add(other())
        camera = Camera(harness, view)
        task = asyncio.create_task(camera.run())
        try:
            yield harness, camera
        finally:
            task.cancel()


@pytest.mark.virtual_time
@pytest.mark.feature("A9")
async def test_a_match_is_reported_with_all_that_is_known() -> None:
    async with looking(Seen(label=GREEN, id="1")) as (harness, camera):
        call = await harness.call("look_out_for", descriptions=["a dog", "the man in red"])
        assert await call.answer() == "Looking out for a dog or the man in red"
        await asyncio.sleep(5.0)
        camera.view = [Seen(label=GREEN, id="1"), Seen(label=RED, at=(3.0, 4.0), id="2", score=0.8)]
        result = await call.result()
        assert result == {
            "matched": True,
            "descriptions": ["a dog", "the man in red"],
            "description": "the man in red",
            "label": RED,
            "score": 0.8,
            "bbox": [140.0, 60.0, 180.0, 180.0],
            "distance_m": 5.0,
            "continued_as": None,
            "continued_with": None,
        }
        match = call.events[-2]
        assert (match.type, match.data["event"], match.data["bbox"]) == ("update", "match", result["bbox"])
        assert match.text == f"Saw {RED} (matches 'the man in red'), 5.0 m away"


@pytest.mark.virtual_time
@pytest.mark.feature("A9")
async def test_several_lookouts_at_once() -> None:
    async with looking() as (harness, camera):
        red = await harness.call("look_out_for", descriptions=["man in red"])
        green = await harness.call("look_out_for", descriptions=["man in green"])
        await red.answer()
        await green.answer()
        camera.view = [Seen(label=GREEN)]
        assert (await green.result())["label"] == GREEN
        assert red.texts("close") == []
        camera.view = [Seen(label=RED)]
        assert (await red.result())["label"] == RED


@pytest.mark.virtual_time
@pytest.mark.feature("A9")
async def test_gives_up_in_time() -> None:
    async with looking(Seen(label=GREEN)) as (harness, _):
        began = clock.monotonic()
        call = await harness.call("look_out_for", descriptions=["man in red"], timeout_s=7.0)
        closed = await call.closed()
        assert clock.monotonic() - began == pytest.approx(7.0, abs=0.1)
        assert closed.outcome is Outcome.COMPLETED
        assert closed.text == "The time is over: man in red did not come into view"
        assert closed.data["result"]["matched"] is False


@pytest.mark.virtual_time
@pytest.mark.feature("A9")
async def test_an_unsure_detector_is_not_believed() -> None:
    async with looking(Seen(score=0.6)) as (harness, _):
        sure = await harness.call("look_out_for", descriptions=["man in red"], confidence=0.7, timeout_s=5.0)
        easy = await harness.call("look_out_for", descriptions=["man in red"], confidence=0.6, timeout_s=5.0)
        assert (await easy.result())["score"] == 0.6
        assert (await sure.result())["matched"] is False
    async with looking(Seen(score=0.6), confidence=0.7) as (harness, _):
        usual = await harness.call("look_out_for", descriptions=["man in red"], timeout_s=5.0)
        assert (await usual.result())["matched"] is False


@pytest.mark.virtual_time
async def test_one_frame_is_not_enough_however_often_it_comes() -> None:
    async with looking() as (harness, camera):
        call = await harness.call("look_out_for", descriptions=["man in red"], timeout_s=20.0)
        for _ in range(2):
            camera.state, camera.view = "live", [Seen()]
            await asyncio.sleep(0.1)
            camera.state = "repeating"
            await asyncio.sleep(8.0)
        assert (await call.result())["matched"] is False
        reported = [text for text in call.texts("update") if text == "There are no new detections. Still looking out"]
        assert len(reported) == 2, "once each time"


@pytest.mark.virtual_time
@pytest.mark.feature("A9")
async def test_then_goes_on_with_another_skill() -> None:
    async with looking(bridge=True, others=(FollowPerson,)) as (harness, camera):
        call = await harness.call("look_out_for", descriptions=["man in red"], then=FOLLOW)
        await call.answer()
        camera.view = [Seen()]
        result = await call.result()
        assert [event.data.get("event") for event in call.events if event.type == "update"] == [
            "started",
            "match",
        ]
        assert result["matched"] is True
        assert call.events[-1].text.endswith("; went on with follow_person"), "an id tells nobody anything"
        assert result["continued_with"] == "follow_person"
        await asyncio.sleep(1.0)
        follow = [event for event in harness.events() if event.call_id == result["continued_as"]]
        assert follow[0].data["arguments"] == {"description": RED}
        assert follow[0].data["parent"] == call.id
        assert follow[0].caller == call.events[0].caller
        assert [event.text for event in follow if event.type == "update"] == [f"Following {RED}"]


@pytest.mark.virtual_time
@pytest.mark.feature("A9")
async def test_then_gets_the_label_the_description_and_the_box() -> None:
    async with looking(Seen(), bridge=True, others=(Clerk,)) as (harness, _):
        arguments = {"note": "saw $label ($description) at $bbox, cost $5", "box": "$bbox"}
        then = {"skill": "take_down", "arguments": arguments}
        call = await harness.call("look_out_for", descriptions=["man in red"], then=then)
        result = await call.result()
        await asyncio.sleep(0.5)
        done = [event for event in harness.events() if event.call_id == result["continued_as"]][-1]
        box = [140.0, 60.0, 180.0, 180.0]
        assert done.text == f"saw {RED} (man in red) at {box}, cost $5 {box}"


@pytest.mark.virtual_time
@pytest.mark.feature("A9")
@pytest.mark.parametrize(
    ("then", "text"),
    [
        (
            {"skill": "folow_person", "arguments": {}},
            "'folow_person'; did you mean 'follow_person'?",
        ),
        ({"skill": "follow_person", "arguments": {"who": "$label"}}, "who: is not an argument of this skill"),
        (
            {"skill": "follow_person", "arguments": {"description": "$bbox"}},
            "description: it must be a text (given: [0.0,",
        ),
        ({"skill": "follow_person", "arguments": {"description": "$labels"}}, "no value for '$labels'; did you mean"),
        ({"skill": "follow_person", "args": {}}, "then.args: there is nothing of this name"),
    ],
)
async def test_a_then_that_could_not_be_called_is_refused_at_once(then: dict[str, Any], text: str) -> None:
    async with looking(Seen(), others=(FollowPerson,)) as (harness, _):
        call = await harness.call("look_out_for", descriptions=["man in red"], then=then)
        with pytest.raises(SkillError) as error:
            await call.answer()
        assert text in str(error.value)
        assert call.texts("update") == []


@pytest.mark.virtual_time
@pytest.mark.feature("A9")
async def test_the_match_is_reported_even_if_then_can_not_start() -> None:
    """Nobody routes the call here: there is no bridge."""
    async with looking(Seen(), others=(FollowPerson,)) as (harness, _):
        call = await harness.call("look_out_for", descriptions=["man in red"], then=FOLLOW)
        closed = await call.closed()
        assert closed.outcome is Outcome.FAILED
        assert f"Saw {RED}" in closed.text
        assert "'follow_person' could not be started" in closed.text
        assert any(event.data.get("event") == "match" for event in call.events)


@pytest.mark.virtual_time
async def test_stop_looking_out_ends_all() -> None:
    async with looking() as (harness, _):
        first = await harness.call("look_out_for", descriptions=["man in red"])
        second = await harness.call("look_out_for", descriptions=["a dog"])
        await second.answer()
        stop = await harness.call("stop_looking_out")
        assert await stop.answer() == "Stopped looking out for man in red and looking out for a dog"
        for call in (first, second):
            closed = await call.closed()
            assert (closed.outcome, closed.text) == (Outcome.CANCELLED, "stop_looking_out was called (by 'test')")
        again = await harness.call("stop_looking_out")
        assert await again.answer() == "No lookout was running"


@pytest.mark.virtual_time
async def test_stop_looking_out_ends_a_lookout_that_is_just_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    checking = asyncio.Event()

    async def check(self: BusSkillClient, skill: str, arguments: Mapping[str, Any]) -> None:
        checking.set()
        await asyncio.sleep(1.0)

    monkeypatch.setattr(BusSkillClient, "check", check)
    async with looking() as (harness, _):
        call = await harness.call("look_out_for", descriptions=["man in red"], then=FOLLOW)
        await checking.wait()
        stop = await harness.call("stop_looking_out")
        assert await stop.answer() == "Stopped looking out for man in red"
        assert (await call.closed()).outcome is Outcome.CANCELLED


@pytest.mark.virtual_time
@pytest.mark.parametrize("descriptions", [[], ["  "], ["x"] * 17])
async def test_descriptions_must_be_there(descriptions: list[str]) -> None:
    async with looking() as (harness, _):
        call = await harness.call("look_out_for", descriptions=descriptions)
        with pytest.raises(SkillError, match="descriptions"):
            await call.answer()


@pytest.mark.virtual_time
@pytest.mark.parametrize("module", [LookOut, FollowPerson, Patrol])
async def test_a_description_is_as_long_as_a_label_at_most(module: type[Module]) -> None:
    config = {"waypoints": [(0.0, 0.0), (1.0, 0.0)]} if module is Patrol else {}
    skill, argument = WANTED[module]
    async with ModuleHarness(module, config=config) as harness:
        for length in (MAX_LABEL, MAX_LABEL + 1):  # of a call that is refused for its time in any case
            text = "x" * length
            given: dict[str, Any] = {argument: text if module is FollowPerson else [text], "timeout_s": 0.0}
            call = await harness.call(skill, **given)
            with pytest.raises(SkillError) as error:
                await call.answer()
            assert (f"at most {MAX_LABEL} characters" in str(error.value)) is (length > MAX_LABEL)


def test_names_are_replaced_at_any_depth() -> None:
    then = Then(skill="x", arguments={"a": ["$label", {"b": "is $label"}], "c": 3, "d": "$bbox"})
    replaced = then.arguments_with({"label": "cat", "bbox": [1, 2, 3, 4]})
    assert replaced == {"a": ["cat", {"b": "is cat"}], "c": 3, "d": [1, 2, 3, 4]}
