"""A viewer looks at a running robot and gives it orders; a recording of the same run looks as what it saw."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.model import ModuleSpec
from dimos_streams.cli.running.foxglove_plan import with_foxglove
from dimos_streams.recording.cut import LogPart
from dimos_streams.recording.export.mcap import export_mcap
from dimos_streams.recording.metadata import describe
from dimos_streams.recording.reader import LogReader
from tests import ports
from tests.foxglove.viewer import Viewer, viewing
from tests.helpers import until
from tests.live.mission import Mission, running

pytest.importorskip("foxglove", reason="the extra `foxglove` is not installed")
pytest.importorskip("mcap", reason="the extra `mcap` is not installed")
pytestmark = [pytest.mark.live, pytest.mark.timeout(120), pytest.mark.feature("I2")]

WATCHED = (
    *("/color_image", "/detections/boxes", "/detections/scene", "/scan", "/tf", "/odom/pose", "/camera_info"),
    *("/cmd_vel", "/tool_streams", "/tool_streams/log", "/tool_streams/calls", "/module_status/scene"),
)

SILENT = {"/teleop_vel", "/hold", "/tool_stream_requests", "/skill_cancels"}
"""Topics on which nothing need come in this run."""
ZONES = [{"name": "stairs", "polygon": [[8, 8], [9, 8], [9, 9]]}]


def test_a_viewer_sees_the_robot_and_holds_it(bus_url: str, free_port: int, tmp_path: Path) -> None:
    log = tmp_path / "a.lcmlog"

    async def main() -> dict[str, tuple[str, str]]:
        blueprint = with_foxglove(resolve("follow-person"), address=str(port := ports.free_port()))
        blueprint = blueprint.configured({"agent.approval.rules": [{"skill": "follow_person"}], "agent.zones": ZONES})
        config = {
            "path": str(log),
            "metadata": describe(blueprint=blueprint.model_dump(mode="json")).model_dump(mode="json"),
        }
        recorder = ModuleSpec(name="recorder", type="dimos_streams.recording.module:RecorderModule", config=config)
        blueprint = blueprint.model_copy(update={"modules": {"recorder": recorder, **blueprint.modules}})
        (tmp_path / "run").mkdir()
        async with (
            running(bus_url, free_port, tmp_path / "run", blueprint) as mission,
            viewing(f"ws://127.0.0.1:{port}") as viewer,
        ):
            await viewer.subscribe(*WATCHED)
            await approved(mission, viewer)
            await looked_at(viewer)
            await held(mission, viewer)
            return {topic: (each["schemaName"], each["schema"]) for topic, each in viewer.channels.items()}

    live = asyncio.run(main())
    recorded = channels_of(log, tmp_path / "a.mcap")
    assert recorded.items() <= live.items(), {topic for topic in recorded if recorded[topic] != live.get(topic)}
    assert live.keys() - recorded.keys() <= SILENT


async def approved(mission: Mission, viewer: Viewer) -> None:
    """The robot follows somebody as soon as the viewer lets it."""
    following = asyncio.create_task(mission.follow())
    refused = await viewer.call("/approve", {})
    while "message" in refused:
        assert "no call waits for approval" in refused["message"]
        await asyncio.sleep(0.2)
        refused = await viewer.call("/approve", {})
    assert refused["done"]
    assert "a call of follow_person, is approved" in refused["text"]
    await following


async def looked_at(viewer: Viewer) -> None:
    picture = await viewer.first("/color_image")
    assert base64.b64decode(picture["data"]).startswith(b"\xff\xd8")
    await viewer.until(lambda: any(seen["texts"] for _, seen in viewer.seen.get("/detections/boxes", ())))
    await viewer.until(lambda: any(seen["entities"] for _, seen in viewer.seen.get("/detections/scene", ())))
    frames = (await viewer.first("/tf"))["transforms"]
    assert [frame["child_frame_id"] for frame in frames] == ["odom", "base_link", "camera_optical"]
    assert (await viewer.first("/odom/pose"))["frame_id"] == "odom"
    assert len((await viewer.first("/scan"))["ranges"]) > 100
    (places,) = (await viewer.first("/module_status/scene"))["entities"]
    assert (places["id"], [text["text"] for text in places["texts"]]) == ("agent", ["stairs"])

    def numbers() -> list[dict[str, Any]]:
        calls = [call for _, call in viewer.seen.get("/tool_streams/calls", ()) if call["skill"] == "follow_person"]
        return [call["progress"] for call in calls if call["progress"].get("distance_m")]

    await viewer.until(lambda: bool(numbers()))
    assert any(line["name"].startswith("follow_person") for _, line in viewer.seen["/tool_streams/log"])


async def held(mission: Mission, viewer: Viewer) -> None:
    """Orders act, and go on acting when the bridge has been replaced; who gave them can be read."""
    paused = await viewer.call("/pause", {"reason": "a child on the floor"})
    moment = clock.monotonic()
    assert (paused["done"], "held by gate" in paused["text"]) == (True, True)
    await until(lambda: mission.still_since(moment) is not None)
    assert (await viewer.call("/resume", {}))["done"]
    await until(lambda: mission.speeds[-1][1] > 0.1)
    assert {event.caller for event in mission.events if event.skill in ("pause", "resume", "decide")} == {"foxglove"}

    mission.kill("bridge")
    pictures = len(viewer.seen["/color_image"])
    await viewer.first("/color_image", after=pictures + 3)
    await mission.until_restarted("bridge")
    await mission.until_offered("pause")
    stopped = await viewer.call("/stop", {"reason": "enough"})
    moment = clock.monotonic()
    assert (stopped["done"], stopped["text"].startswith("every robot is stopped, held by gate")) == (True, True)
    await until(lambda: mission.still_since(moment) is not None)
    (stop,) = (await asyncio.to_thread(mission.stopped))["stops"]
    assert stop["reason"] == "enough (by foxglove)"
    assert "no robot is called 'robot9'" in (await viewer.call("/stop", {"robot": "robot9"}))["message"]
    assert (await viewer.call("/release", {}))["done"]


def channels_of(log: Path, target: Path) -> dict[str, tuple[str, str]]:
    """The channels of a recording, with their schemas."""
    from mcap.reader import make_reader

    with LogReader(log) as reader:
        export_mcap(reader, target, LogPart())
    with target.open("rb") as file:
        summary = make_reader(file).get_summary()
    assert summary is not None
    schemas = {number: (schema.name, schema.data.decode()) for number, schema in summary.schemas.items()}
    return {channel.topic: schemas[channel.schema_id] for channel in summary.channels.values()}
