"""A recording that means ill: whatever somebody may put into a log, and stamp as they like."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

from dimos_streams.messages.base import Message
from dimos_streams.messages.codec import channel_name, encode
from dimos_streams.messages.dimos_streams import ToolStreamEvent
from dimos_streams.messages.geometry_msgs import Point, Pose, PoseWithCovariance, Quaternion, Twist, Vector3
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.sensor_msgs import Image, LaserScan
from dimos_streams.messages.std_msgs import Header, Time
from dimos_streams.recording.metadata import CHANNEL, Metadata
from dimos_streams.tool_stream.protocol.channels import EVENTS
from tests.browser.test_hostile import EVIL
from tests.recording.logs import START, write_log

HUGE = 1.7e308
_NUMBERS = (float("nan"), float("inf"), -HUGE, HUGE, 0.0, 1e-320, 3.0)


def hostile_log(path: Path, *, calls: int, at_one_instant: bool = False) -> Path:
    """Write one with so many calls, and as much of everything else as matters."""
    rng = random.Random(3)
    messages = [*_calls(calls), *_senses(rng), *_texts()]
    rng.shuffle(messages)
    corners = [[HUGE, HUGE], [-HUGE, 1], [float("1e300"), -HUGE]]
    zones = [{"name": EVIL, "polygon": corners}]
    blueprint = {"modules": {"agent": {"config": {"zones": zones, "model": EVIL}}}}
    stamps = [START if at_one_instant else START + rng.randint(-2_000_000, 9_000_000) for _ in messages]
    events = [(stamp, *message) for stamp, message in zip(stamps, messages, strict=True)]
    return write_log(path, [(START, CHANNEL, Metadata(blueprint=blueprint).encoded()), *events])


def _calls(count: int) -> Iterator[tuple[str, bytes]]:
    for number in range(count):
        skill = ("say", "go_to", "follow_person")[number % 3]
        who = {"module": "agent" if skill == "say" else "drive", "skill": skill, "caller": "agent"}
        call = f"c{number}"
        arguments = {"text": EVIL, "x": HUGE, "y": "no number", EVIL[:50]: [[[{}]]], "__proto__": {"a": 1}}
        yield _event(1, "open", call, json.dumps({"arguments": arguments, "resources": ["base", EVIL]}), **who)
        yield _event(2, "progress", call, json.dumps({"distance_m": HUGE, "constructor": 1, "a": [1]}), **who)
        if number % 2:
            end = {"outcome": "completed", "result": {"picture": "../../etc/passwd", "text": EVIL}}
            yield _event(3, "close", call, json.dumps(end), **who)


def _texts() -> Iterator[tuple[str, bytes]]:
    """What no publisher sends: deep, of wrong types, half characters, a megabyte."""
    deep = "[" * 100_000 + "]" * 100_000
    wrong = ['{"arguments": 7, "outcome": []}', "null", "[]", deep, '{"arguments": ' + deep + "}", "{", '"\\ud83d"']
    for number, data in enumerate(wrong):
        yield _event(1, "open", f"w{number}", data)
    yield _event(1, "open", "m", "{}", text="x" * 1_000_000)
    yield EVENTS, b"\xff" * 300
    yield "\u202e/evil<b>#std_msgs.String", b"\0" * 8
    for number in range(300):
        yield _message(f"/topic_{number}", Twist(linear=Vector3(x=float("nan"))))


def _senses(rng: random.Random) -> Iterator[tuple[str, bytes]]:
    for _ in range(100):
        x, y, z, w = (rng.choice(_NUMBERS) for _ in range(4))
        pose = Pose(position=Point(x=x, y=y), orientation=Quaternion(z=z, w=w))
        header = Header(frame_id=rng.choice(("odom", EVIL[:60], "")), stamp=Time(sec=rng.choice((0, 2**31 - 1, -1))))
        yield _message("/odom", Odometry(header=header, pose=PoseWithCovariance(pose=pose)))
        step, far = (each if abs(each) != HUGE else 3e38 for each in (x, y))
        scan = LaserScan(header=header, angle_increment=step, range_max=far, ranges=[step, far] * 50, intensities=[])
        yield _message("/scan", scan)
        sides = rng.choice((1, 70_000, 2**31 - 1))
        yield _message("/color_image", Image(encoding="rgb8", width=sides, height=sides, step=3, data=b"\1\2\3"))


def _event(seq: int, type: str, call: str, data: str, *, text: str = EVIL, **who: str) -> tuple[str, bytes]:
    names = {"module": "m", "skill": "s", "caller": "agent", **who}
    event = ToolStreamEvent(utime=START, call_id=call, seq=seq, type=type, text=text, data_json=data, **names)
    return EVENTS, encode(event)


def _message(topic: str, message: Message) -> tuple[str, bytes]:
    return channel_name(topic, type(message)), encode(message)
