"""The detector module on a bus, fed by the simulator or with images of its own."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dimos_streams import clock
from dimos_streams.errors import UserError
from dimos_streams.messages.codec import channel_name, encode
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.messages.image import image_from_array
from dimos_streams.messages.sensor_msgs import CameraInfo, Image
from dimos_streams.messages.std_msgs import String
from dimos_streams.messages.tf2_msgs import TFMessage
from dimos_streams.messages.time import header, utime_of
from dimos_streams.messages.vision_msgs import Detection2D, Detection2DArray
from dimos_streams.perception.choice import BACKENDS
from dimos_streams.perception.config import NAMES
from dimos_streams.perception.detector import Detection, Frame
from dimos_streams.perception.geometry import Box
from dimos_streams.perception.module import DetectorStatistics, PersonDetector
from dimos_streams.perception.tracking import Tracker
from dimos_streams.person_description import MATCH_THRESHOLD, match_score
from dimos_streams.robot.simulator import Simulator
from dimos_streams.testing.harness import ModuleHarness
from tests.helpers import run_virtual, until
from tests.perception.chat_server import ChatServer, chat_server

RED = "person in a red shirt and blue trousers"
INFO = CameraInfo(width=320, height=240, K=[200.0, 0, 159.5, 0, 200.0, 119.5, 0, 0, 1])
UNSEEN = ("color_image", "wanted_descriptions")
"""Inputs that the segmentation backend has no use for."""


def label(detection: Detection2D) -> str:
    return detection.results[0].hypothesis.class_id


def position(detection: Detection2D) -> tuple[float, float, float]:
    point = detection.results[0].pose.pose.position
    return point.x, point.y, point.z


@dataclass
class Pictures:
    """Instance and depth images with one person in them, made to order."""

    harness: ModuleHarness
    depth: bool = True
    utime: int = 1_000_000

    def describe(self) -> None:
        self.harness.feed("camera_info", INFO)
        self.harness.feed("instance_labels", String(data=json.dumps({"1": RED})))

    def take(self, *, person: bool = True, depth_mm: int = 2000, encoding: str = "16UC1") -> None:
        self.utime += 100_000
        stamp = header("camera_optical", self.utime)
        instances = np.zeros((120, 160), dtype=np.uint8)
        instances[20:100, 70:90] = person
        self.harness.feed("instances", image_from_array(instances, "mono8", stamp))
        if self.depth:
            depth: NDArray[Any] = np.full((120, 160), depth_mm, dtype=np.uint16)
            if encoding == "32FC1":
                depth = depth.astype(np.float32) / 1000
            self.harness.feed("depth_image", image_from_array(depth, encoding, stamp))


@dataclass
class Observed:
    """The outputs of a simulation, 10 times a second."""

    detections: list[Detection2DArray]
    truth: list[TFMessage]
    pictures: int
    statistics: DetectorStatistics


async def observed(detector: PersonDetector, simulator: Simulator, seconds: float, *unwired: str) -> Observed:
    async with ModuleHarness(detector, unwired=unwired) as harness:
        await harness.add(simulator)
        await asyncio.sleep(seconds)
        return Observed(
            harness.sent("detections"),
            harness.sent("ground_truth"),
            simulator.pictures_taken,
            detector.statistics(),
        )


def true_positions(truth: TFMessage) -> dict[str, tuple[float, float]]:
    """People's places in base_link, by name."""
    frames = {t.child_frame_id: t.transform for t in truth.transforms}
    base = frames.pop("base_link")
    yaw = 2 * math.atan2(base.rotation.z, base.rotation.w)
    c, s = math.cos(yaw), math.sin(yaw)
    places = {}
    for name, transform in frames.items():
        dx = transform.translation.x - base.translation.x
        dy = transform.translation.y - base.translation.y
        places[name] = (c * dx + s * dy, c * dy - s * dx)
    return places


@pytest.mark.slow
def test_the_simulators_people_are_where_they_are_said_to_be() -> None:
    run = run_virtual(observed(PersonDetector(), Simulator({"seed": 1}), 8.0, *UNSEEN))
    assert len(run.detections) >= run.pictures - 11  # the labels come after a second
    assert (run.statistics.failed, run.statistics.incomplete) == (0, 0)
    places = {utime_of(t.transforms[0].header): true_positions(t) for t in run.truth}
    identities: dict[str, set[str]] = {}
    compared = 0
    for message in run.detections:
        assert message.header.frame_id == "base_link"
        for detection in message.detections:
            identities.setdefault(label(detection), set()).add(detection.id)
            if detection.results[0].hypothesis.score < 1.0:
                continue  # hardly visible: its middle is not the body's
            x, y, z = position(detection)
            tx, ty = places[utime_of(message.header)][f"person_{label(detection).split()[3]}"]
            assert math.hypot(x - tx, y - ty) < 0.45
            assert 0.1 < z < 1.8
            compared += 1
    assert compared > 50
    assert len(identities[RED]) == 1


@pytest.mark.virtual_time
async def test_the_colour_image_is_not_rendered_for_nothing() -> None:
    async with ModuleHarness(PersonDetector(), unwired=UNSEEN) as harness:
        assert not harness.bus.has_subscribers(channel_name("/color_image", Image))


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes() -> None:
    def run() -> list[bytes]:
        seen = run_virtual(observed(PersonDetector(), Simulator({"seed": 3}), 3.0, *UNSEEN))
        return [encode(message) for message in seen.detections]

    first = run()
    assert first
    assert first == run()


@pytest.mark.slow
def test_hog_finds_the_simulators_people_through_the_bus() -> None:
    pytest.importorskip("cv2", reason="the extra 'vision' is not installed")
    simulator = Simulator({"people": ["person_red"]})
    run = run_virtual(observed(PersonDetector({"backend": "hog"}), simulator, 2.5, "instances"))
    assert len(run.detections) >= 23
    places = {utime_of(t.transforms[0].header): true_positions(t)["person_red"] for t in run.truth}
    found = [
        (detection.id, math.dist(position(detection)[:2], places[utime_of(message.header)]))
        for message in run.detections
        for detection in message.detections
        if match_score("someone in a red shirt", label(detection)) >= MATCH_THRESHOLD
    ]
    assert len(found) >= 0.7 * len(run.detections)
    assert len({id for id, _ in found}) == 1
    assert max(distance for _, distance in found) < 0.5


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_identities_last_while_the_robot_swings_round() -> None:
    async with ModuleHarness(PersonDetector(), unwired=UNSEEN) as harness:
        await harness.add(Simulator({"people": ["person_red"]}))
        await asyncio.sleep(1.0)
        for step in range(40):
            turn = -2.0 if step % 8 in (0, 1, 6, 7) else 2.0
            harness.feed("cmd_vel", Twist(angular=Vector3(z=turn)))
            await asyncio.sleep(0.1)
        ids = [detection.id for message in harness.sent("detections") for detection in message.detections]
        assert len(ids) > 20
        assert set(ids) == {"1"}


@pytest.mark.virtual_time
async def test_an_empty_array_says_nobody_and_silence_says_no_idea() -> None:
    async with ModuleHarness(PersonDetector(), unwired=UNSEEN) as harness:
        heard, pictures = harness.sent("detections"), Pictures(harness)
        pictures.take()
        await asyncio.sleep(0.1)
        assert heard == []  # camera and labels are unknown
        pictures.describe()
        pictures.take()
        await asyncio.sleep(0.1)
        (detection,) = heard[-1].detections
        assert (detection.id, label(detection)) == ("1", RED)
        assert utime_of(heard[-1].header) == pictures.utime
        assert (detection.bbox.center.position.x, detection.bbox.size_x) == (160.0, 40.0)
        assert (detection.bbox.center.position.y, detection.bbox.size_y) == (120.0, 160.0)
        assert position(detection) == pytest.approx((2.06, 0.0, 1.1), abs=0.02)
        pictures.take(person=False)
        await asyncio.sleep(0.1)
        assert heard[-1].detections == []
        pictures.take(depth_mm=0)
        await asyncio.sleep(0.1)
        (detection,) = heard[-1].detections
        assert detection.id == "1"
        assert all(math.isnan(value) for value in position(detection))
        assert len(heard) == 3


@pytest.mark.virtual_time
async def test_without_depth_and_odometry_it_still_sees() -> None:
    unwired = (*UNSEEN, "depth_image", "odom", "tf")
    async with ModuleHarness(PersonDetector(), unwired=unwired) as harness:
        pictures = Pictures(harness, depth=False)
        pictures.describe()
        pictures.take()
        await asyncio.sleep(0.1)
        assert [label(d) for d in harness.sent("detections")[-1].detections] == [RED]


@pytest.mark.virtual_time
@pytest.mark.parametrize("off", [400 * 86_400_000_000, -1_000_000])
async def test_identities_outlast_wrong_stamps_and_a_clock_that_is_set(off: int) -> None:
    detector = PersonDetector()
    async with ModuleHarness(detector, unwired=UNSEEN) as harness:
        heard, pictures = harness.sent("detections"), Pictures(harness, utime=500_000_000)
        pictures.describe()
        for step in range(20):
            # One picture has a wrong stamp, and from the tenth on the clock is another.
            pictures.utime += off if step in (4, 10) else -off if step == 5 else 0
            pictures.take()
            await asyncio.sleep(0.1)
        assert len(heard) == 20 - 1 - 2
        assert detector.statistics().misstamped == 3
        assert {detection.id for message in heard for detection in message.detections} == {"1"}
        assert utime_of(heard[-1].header) == pictures.utime


def test_damaged_input_is_counted_and_logged_once_a_second(settled_log: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        detector = PersonDetector()
        async with ModuleHarness(detector, unwired=UNSEEN) as harness:
            heard, pictures = harness.sent("detections"), Pictures(harness)
            pictures.describe()
            for text in ("", "[]", "{", '{"a": "b"}', '{"1": 5}'):
                harness.feed("instance_labels", String(data=text))
            for step in range(20):
                stamp = header("camera_optical", pictures.utime + step)
                harness.feed("instances", Image(header=stamp, width=9, height=9, step=9, encoding="mono8"))
                harness.feed("depth_image", Image(header=stamp))
                await asyncio.sleep(0.01)
            assert heard == []
            assert detector.statistics().failed == 20
            assert detector.health.startswith("the last frame could not be judged: bad sensor_msgs.Image")
            pictures.take()
            await asyncio.sleep(0.1)
            assert [label(d) for d in heard[-1].detections] == [RED]
            assert detector.health == "ok"

    with settled_log.at_level(logging.WARNING):
        run_virtual(scenario())
    assert sum("a frame was left out" in record.message for record in settled_log.records) == 1
    assert sum("skipped:" in record.message for record in settled_log.records) == 1


@pytest.mark.virtual_time
async def test_a_defect_in_the_tracker_costs_its_frames_and_no_later_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    detector = PersonDetector()
    async with ModuleHarness(detector, unwired=UNSEEN) as harness:
        heard, pictures = harness.sent("detections"), Pictures(harness)
        pictures.describe()
        with monkeypatch.context() as defect:
            defect.setattr(Tracker, "update", None)
            for failures in (1, 2):
                pictures.take()
                await asyncio.sleep(0.1)
                assert detector.statistics().failed == failures
        assert detector.health.startswith("the last frame could not be judged: TypeError(")
        pictures.take()
        await asyncio.sleep(0.1)
        assert [label(d) for d in heard[-1].detections] == [RED]
        assert (detector.health, len(heard)) == ("ok", 1)


def test_depth_in_metres_places_people_as_depth_in_millimetres_does() -> None:
    async def scenario() -> None:
        detector = PersonDetector()
        async with ModuleHarness(detector, unwired=UNSEEN) as harness:
            pictures = Pictures(harness)
            pictures.describe()
            pictures.take()
            await asyncio.sleep(0.1)
            pictures.take(encoding="32FC1")
            await asyncio.sleep(0.1)
            first, second = (position(message.detections[0]) for message in harness.sent("detections"))
            assert first == pytest.approx(second)

    run_virtual(scenario())


def test_an_encoding_that_does_not_belong_on_a_topic_is_one_line_that_names_both(
    settled_log: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with ModuleHarness(PersonDetector(), unwired=UNSEEN) as harness:
            pictures = Pictures(harness, depth=False)
            pictures.describe()
            for _ in range(5):
                pictures.take()
                stamp = header("camera_optical", pictures.utime)
                harness.feed("depth_image", Image(header=stamp, width=1, height=1, step=2, encoding="yuv422"))
                await asyncio.sleep(0.1)
            assert harness.sent("detections") == []

    with settled_log.at_level(logging.WARNING):
        run_virtual(scenario())
    (line,) = [record.message for record in settled_log.records]
    assert line.startswith(
        "a frame was left out: bad sensor_msgs.Image on 'depth_image': encoding 'yuv422' is no depth"
    )


@pytest.mark.parametrize(
    ("backend", "missing"),
    [("segmentation", "instance_labels"), ("hog", "color_image"), ("vlm", "wanted_descriptions")],
)
def test_a_missing_input_is_the_users_to_mend(backend: str, missing: str) -> None:
    async def scenario() -> None:
        async with ModuleHarness(PersonDetector({"backend": backend}), unwired=(missing,)):
            pass

    with pytest.raises(UserError, match=f"'{backend}' needs the input '{missing}'"):
        run_virtual(scenario())


@dataclass
class Photographs:
    """Colour images, and somebody who wants to find something in them."""

    harness: ModuleHarness
    utime: int = 1_000_000

    def take(self) -> None:
        self.utime += 100_000
        rgb = np.full((240, 320, 3), 90, dtype=np.uint8)
        stamp = header("camera_optical", self.utime)
        self.harness.feed("camera_info", INFO)
        self.harness.feed("color_image", image_from_array(rgb, "jpeg", stamp))

    def want(self) -> None:
        self.harness.feed("wanted_descriptions", String(data='["person in red"]'))


UNWIRED = ("depth_image", "instances", "instance_labels", "odom", "tf")
"""Inputs that a backend for colour images can do without."""
FOUND = {"description": "person in red", "label": "a jogger", "score": 0.8, "box": [100, 100, 300, 900]}


@asynccontextmanager
async def vision_model(
    server: ChatServer, timeout_s: float = 30.0
) -> AsyncIterator[tuple[PersonDetector, Photographs, list[Detection2DArray]]]:
    """The detector module before a scripted model, which is asked for a person in red."""
    vlm = {"base_url": server.url, "model": "eyes-1", "timeout_s": timeout_s}
    detector = PersonDetector({"backend": "vlm", "vlm": vlm, "min_score": 0.5})
    async with ModuleHarness(detector, unwired=UNWIRED) as harness:
        photographs = Photographs(harness)
        photographs.want()
        yield detector, photographs, harness.sent("detections")


def test_the_loop_lives_while_a_model_thinks_and_the_newest_frame_wins() -> None:
    async def scenario(server: ChatServer) -> None:
        async with vision_model(server) as (detector, photographs, heard):
            server.script.append(None)
            photographs.take()
            await until(server.asked.is_set)
            server.finds(FOUND)
            for _ in range(5):
                photographs.take()
            await until(lambda: detector.statistics().skipped == 4)
            server.over.set()
            await until(lambda: bool(heard))
            assert utime_of(heard[0].header) == photographs.utime
            (detection,) = heard[0].detections
            assert [r.hypothesis.class_id for r in detection.results] == ["person in red", "a jogger"]
            assert (detector.statistics().skipped, detector.statistics().failed) == (4, 1)

    with chat_server() as server:
        asyncio.run(scenario(server))


def test_a_model_that_fails_in_every_way_stops_nothing() -> None:
    async def scenario(server: ChatServer) -> None:
        async with vision_model(server, timeout_s=0.2) as (detector, photographs, heard):
            server.script += [(500, "overloaded"), (200, "garbage"), None]
            server.says("no idea")

            async def fails_or_finds() -> None:
                before = detector.statistics().failed
                photographs.take()
                await until(lambda: heard or detector.statistics().failed == before + 1)

            for _ in range(4):
                await fails_or_finds()
            assert (detector.statistics().failed, heard) == (4, [])
            while not heard:  # on a busy machine an answer may be late by itself
                server.finds(FOUND, FOUND | {"score": 0.4})
                await fails_or_finds()
            assert [label(d) for d in heard[-1].detections] == ["person in red"]
            assert len(heard) == 1

    with chat_server() as server:
        asyncio.run(scenario(server))


class Granted:
    """Sees whatever is wanted."""

    inputs = ("color_image", "wanted_descriptions")

    def detect(self, frame: Frame, wanted: Sequence[str]) -> list[Detection]:
        return [Detection(box=Box(1.0, 1.0, 9.0, 9.0), label=each, score=0.9) for each in wanted]

    def close(self) -> None: ...


@pytest.mark.virtual_time
async def test_what_nobody_repeats_is_no_longer_wanted() -> None:
    detector = PersonDetector({"backend": f"{__name__}:Granted", "tracking": {"confirm_hits": 1}})
    async with ModuleHarness(detector, unwired=UNWIRED) as harness:
        photographs, heard = Photographs(harness), harness.sent("detections")
        photographs.want()
        photographs.take()
        await asyncio.sleep(5.0)
        harness.feed("wanted_descriptions", String(data="person in red"))
        photographs.take()
        await asyncio.sleep(0.1)
        assert [len(message.detections) for message in heard] == [1, 0]


def test_a_server_is_not_asked_in_virtual_time() -> None:
    async def scenario(server: ChatServer) -> None:
        async with vision_model(server, timeout_s=5.0):
            pass

    with chat_server() as server:
        with pytest.raises(UserError, match="backend 'vlm' asks a server, which keeps no virtual time"):
            run_virtual(scenario(server))
        assert server.requests == []


def test_stopping_does_not_wait_for_the_model() -> None:
    async def scenario(server: ChatServer) -> float:
        async with vision_model(server, timeout_s=30.0) as (_, photographs, _):
            server.script.append(None)
            photographs.take()
            await until(server.asked.is_set)
            before = clock.monotonic()
        await asyncio.get_running_loop().shutdown_default_executor()
        return clock.monotonic() - before

    with chat_server() as server:
        assert asyncio.run(scenario(server)) < 2.0


def test_each_backend_that_can_be_named_is_there() -> None:
    assert tuple(BACKENDS) == NAMES
