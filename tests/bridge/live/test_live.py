"""``WS /live`` over real sockets."""

from __future__ import annotations

import asyncio
from array import array

import pytest
import requests

from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.sensor_msgs import LaserScan
from dimos_streams.messages.std_msgs import Float32
from dimos_streams.messages.time import header
from dimos_streams.messages.vision_msgs import BoundingBox2D, Detection2D, Detection2DArray
from tests.bridge.live.watched_topics import looking, picture, publish, sent_until, subscribed, topics
from tests.helpers import no_threads, until


def test_a_picture_comes_byte_by_byte_as_it_is_on_the_bus() -> None:
    async def scenario() -> None:
        async with topics() as scene, looking(scene, "/color_image") as client:
            image = picture()
            publish(scene, "/color_image", image)
            await until(lambda: client.frames)
            (frame,) = client.frames
            assert frame.payload == image.data
            utime = frame.header.pop("utime")
            assert isinstance(utime, int)
            assert frame.header == {
                "topic": "/color_image",
                "type": "sensor_msgs.Image",
                "kind": "picture",
                "robot": "",
                "number": 1,
                "stamp": 5_000_000,
                "frame_id": "camera",
                "encoding": "jpeg",
                "width": 32,
                "height": 24,
                "dropped": 0,
            }

    asyncio.run(scenario())


def test_scans_detections_odometry_and_numbers_come_in_their_forms() -> None:
    async def scenario() -> None:
        watched = ("/scan", "/detections", "/robot1/odom", "/level")
        async with topics() as scene, looking(scene, *watched) as client:
            ranges = [1.5, 2.5, float("inf"), float("nan")]
            scan = LaserScan(header=header("lidar", 7_000_001), angle_min=-1.0, angle_increment=0.5, ranges=ranges)
            scan.range_min, scan.range_max, scan.intensities = 0.25, 8.0, [1.0, 2.0]
            publish(scene, "/scan", scan)
            box = Detection2D(id="4", bbox=BoundingBox2D(size_x=float("nan"), size_y=3.0))
            publish(scene, "/detections", Detection2DArray(detections=[box]))
            publish(scene, "/robot1/odom", Odometry(child_frame_id="base_link"))
            publish(scene, "/level", Float32(data=0.5))
            await until(lambda: len(client.frames) == 4)
            seen = {frame.header["topic"]: frame for frame in client.frames}

            of_scan = seen["/scan"].header
            assert (of_scan["stamp"], of_scan["frame_id"], of_scan["kind"]) == (7_000_001, "lidar", "scan")
            assert [of_scan[name] for name in ("angle_min", "angle_increment", "range_min", "range_max")] == [
                *(-1.0, 0.5, 0.25, 8.0)
            ]
            shown = array("f", seen["/scan"].payload)
            assert list(shown[:3]) == ranges[:3]
            assert shown[3] != shown[3]

            (shown_box,) = seen["/detections"].header["message"]["detections"]
            assert (shown_box["id"], shown_box["bbox"]["size_x"], shown_box["bbox"]["size_y"]) == ("4", None, 3.0)
            odometry = seen["/robot1/odom"].header
            assert (odometry["kind"], odometry["robot"], odometry["stamp"]) == ("odometry", "robot1", None)
            assert odometry["message"]["child_frame_id"] == "base_link"
            assert (seen["/level"].header["kind"], seen["/level"].header["message"]) == ("number", {"data": 0.5})

    asyncio.run(scenario())


def test_the_next_frame_comes_when_the_last_one_was_seen_and_is_the_newest() -> None:
    async def scenario() -> None:
        async with topics() as scene, looking(scene, "/level", acknowledges=False) as client:
            for value in range(5):
                publish(scene, "/level", Float32(data=value))
                await until(lambda number=value: scene.bridge.live.topic("/level").number > number)  # type: ignore[misc]
            await until(lambda: client.frames)
            await client.see("/level")
            await until(lambda: len(client.frames) == 2)
            publish(scene, "/level", Float32(data=9.0))
            await client.see("/level")
            await until(lambda: len(client.frames) == 3)
            shown = [(f.header["message"]["data"], f.header["number"], f.header["dropped"]) for f in client.frames]
            assert shown == [(0.0, 1, 0), (4.0, 5, 3), (9.0, 6, 3)]

    asyncio.run(scenario())


def test_nothing_is_subscribed_to_while_nobody_watches() -> None:
    async def scenario() -> None:
        async with topics() as scene:
            names = [each["topic"] for each in scene.bridge.live.listed()]
            live = scene.bridge.live

            def taken() -> set[str]:
                return {name for name in names if live.topic(name)._subscription is not None}

            assert taken() == set()
            async with looking(scene, "/color_image") as one, looking(scene, "/color_image") as two:
                bulky = {"/note", "/odd"}
                assert taken() == set(names) - bulky, "the others are counted"
                await one.watch()
                await one.send({"watch": {"/scan": {}}})
                await until(lambda: subscribed(scene, "/scan"))
                assert subscribed(scene, "/color_image"), "somebody else watches it still"
                await two.watch()
                await until(lambda: "/color_image" not in taken())
            await until(lambda: not taken())
            assert live.viewers == 0

    asyncio.run(scenario())


@pytest.mark.slow
def test_what_can_be_watched_is_listed_and_how_often_it_comes() -> None:
    async def scenario() -> None:
        async with topics() as scene:
            answer = await asyncio.to_thread(requests.get, f"{scene.bridge.url}/live", timeout=5)
            listed = {each.pop("topic"): each for each in answer.json()["topics"]}
            assert list(listed) == sorted(listed)
            assert listed["/robot2/odom"] == {
                "type": "nav_msgs.Odometry",
                "kind": "odometry",
                "robot": "robot2",
                "hz": None,
            }
            assert listed["/odd"]["kind"] == "other"
            async with looking(scene) as client:
                (first,) = client.said("topics")
                assert {each["topic"] for each in first["topics"]} == set(listed)
                await sent_until(
                    lambda: publish(scene, "/level", Float32()),
                    lambda: any(said["hz"].get("/level") for said in client.said("rates")),
                )
                assert "/color_image" not in client.said("rates")[-1]["hz"], "pictures are not made to be counted"

    asyncio.run(scenario())


def test_a_picture_that_finds_no_thread_is_named_and_the_next_ones_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dimos_streams.bridge.live.viewer._FAULT_EVERY_S", 0.01)

    async def scenario() -> None:
        async with topics() as scene, looking(scene, "/color_image") as client:
            with no_threads():
                publish(scene, "/color_image", picture("rgb8"))
                await until(lambda: client.said("error"))
            (said,) = client.said("error")
            assert said["text"].startswith(
                "/color_image#sensor_msgs.Image can't be shown: can't start new thread: no"
            )
            await sent_until(lambda: publish(scene, "/color_image", picture("rgb8")), lambda: client.frames)

    asyncio.run(scenario())
