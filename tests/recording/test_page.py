"""The report of a recording, as one page."""

from __future__ import annotations

import cmath
import math
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dimos_streams.cli.entry import run_command
from dimos_streams.errors import UserError
from dimos_streams.messages.base import Message
from dimos_streams.messages.codec import channel_name, encode
from dimos_streams.messages.geometry_msgs import Point, Pose, PoseWithCovariance, Quaternion
from dimos_streams.messages.image import JPEG, image_from_array
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.sensor_msgs import LaserScan
from dimos_streams.messages.time import header
from dimos_streams.messages.vision_msgs import Detection2DArray
from dimos_streams.recording.metadata import CHANNEL, Choice, Metadata
from dimos_streams.recording.reader import LogReader
from dimos_streams.recording.report.collect import collect
from dimos_streams.recording.report.figures.map_figure import COLOURS, map_figure
from dimos_streams.recording.report.model import Recorded
from dimos_streams.recording.report.write import LEAST_BYTES, write_report
from dimos_streams.tool_stream.event import EventType, ToolEvent
from dimos_streams.tool_stream.protocol.channels import EVENTS
from dimos_streams.tool_stream.wire.packing import pack_event
from tests.messages.test_detections import detected
from tests.recording.logs import START, write_log

ODOM = "/odom#nav_msgs.Odometry"
SCAN = "/scan#sensor_msgs.LaserScan"
EVIL = "</p><script>alert(1)</script><img src=http://example.com/x onerror=alert(1)>\x1b[2J\u202e"


class _Page(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def recorded_of(path: Path) -> Recorded:
    with LogReader(path) as log:
        return collect([log])


def reported(path: Path, **options: Any) -> str:
    target = path.with_suffix(".html")
    with LogReader(path) as log:
        size = write_report([log], target, **options)
    assert size == target.stat().st_size
    return target.read_text()


def event(
    at_s: float,
    seq: int,
    type: EventType,
    text: str = "",
    call: str = "c1",
    module: str = "drive",
    skill: str = "go_to",
    caller: str = "me",
    **data: Any,
) -> tuple[int, str, bytes]:
    utime = START + round(at_s * 1e6)
    names: dict[str, Any] = {"module": module, "skill": skill, "caller": caller}
    event = ToolEvent(utime=utime, call_id=call, seq=seq, type=type, text=text, data=data, **names)
    return utime, EVENTS, pack_event(event)


def odometry(at_s: float, x: float) -> tuple[int, str, bytes]:
    pose = Pose(position=Point(x=x), orientation=Quaternion(w=1.0))
    return START + round(at_s * 1e6), ODOM, encode(Odometry(pose=PoseWithCovariance(pose=pose)))


@pytest.mark.slow
@pytest.mark.feature("I3")
def test_a_mission_is_told_in_one_file_that_loads_nothing(picture_log: Path, tmp_path: Path) -> None:
    log = tmp_path / "a.lcmlog"
    shutil.copyfile(picture_log, log)
    text = reported(log)
    page = _Page(text)
    assert not {"script", "link", "iframe", "object", "embed", "form", "base"} & set(page.tags)
    assert "<meta content=\"default-src 'none'; style-src 'sha256-" in text
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "style"]
    links = [value for name, value in page.attributes if name in ("src", "href", "xlink:href")]
    assert links
    assert all(value and value.startswith("data:image/jpeg;base64,") for value in links)
    assert re.findall(r"https?://", text) == []
    assert len(text) < 1_000_000
    for said in (
        "look_out_for",
        "Looking out for",
        "follow_person",
        "person in a red shirt",
        "Key frames",
        "cancelled",
    ):
        assert said in page.text, said
    recorded = recorded_of(log)
    assert {frame.topic for frame in recorded.frames} == {"/color_image"}
    assert any(box.label.endswith("red shirt and blue trousers") for box in recorded.frames[-1].boxes)
    assert 0.1 < recorded.ways[""].distance_m < 10
    assert len(recorded.scene.obstacles) > 50
    assert {"speed, m/s", "follow_person: distance_m"} <= recorded.series.keys()


@pytest.mark.feature("I3")
def test_the_same_recording_gives_the_same_bytes(mission_log: Path, tmp_path: Path) -> None:
    pages = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        log = tmp_path / name / f"{name}.lcmlog"
        shutil.copyfile(mission_log, log)
        pages.append(reported(log))
    assert pages[0] == pages[1]
    assert "There are no pictures in the recording" in pages[0]


def test_whatever_is_said_is_text(tmp_path: Path) -> None:
    events = [
        event(0, 1, "open", EVIL, arguments={"x": 1.0, "y": 2.0, EVIL: EVIL}, resources=[EVIL]),
        event(1, 2, "update", EVIL, event=EVIL, distance_m=1.0),
        event(2, 3, "progress", EVIL, distance_m=3.0, battery=True),
        event(3, 4, "close", EVIL, outcome="failed", result={EVIL: EVIL}),
        event(3, 1, "open", "\udc80 half", call="c2"),
    ]
    page = _Page(reported(write_log(tmp_path / "a.lcmlog", events)))
    assert not {"script", "img"} & set(page.tags)
    assert "<script>alert(1)</script>" in page.text
    assert "\x1b" not in page.text
    assert "\u202e" not in page.text
    assert "open at the end" in page.text


def test_events_are_told_once_and_in_order_and_gaps_are_named(tmp_path: Path) -> None:
    events = [
        event(0, 1, "open"),
        event(1, 3, "update", "third"),
        event(2, 2, "update", "second"),
        event(2, 2, "update", "second"),
        event(3, 6, "update", "sixth"),
        event(30, 7, "close", "done", outcome="completed"),
        event(31, 7, "close", "done", outcome="completed"),
    ]
    recorded = recorded_of(write_log(tmp_path / "a.lcmlog", events))
    (call,) = recorded.calls
    assert [moment.type for moment in call.moments] == ["open", "update", "update", "gap", "update", "close"]
    assert [moment.text for moment in call.moments][1:3] == ["second", "third"]
    assert (call.gaps, call.updates, call.outcome, recorded.repeated) == (2, 3, "completed", 2)
    assert "2 events missing" in reported(tmp_path / "a.lcmlog")


def test_a_call_that_begins_with_what_no_call_has_is_told_without_it(tmp_path: Path) -> None:
    odd = event(0, 1, "open", "x", resources=5, arguments=[1], parent=7)
    (call,) = recorded_of(write_log(tmp_path / "a.lcmlog", [odd])).calls
    assert (call.resources, call.arguments, call.parent) == ((), {}, "")


@pytest.mark.parametrize(
    "entry",
    [
        {"role": ["operator"]},
        {"role": {}},
        {"role": "tool", "skill": ["x"]},
        {"role": "tool", "text": "deep\n" + "[" * 1999},
        {"role": "tool", "text": "whole\n" + "[" * 900 + "]" * 900},
        {"role": "tool", "text": "large\n" + "9" * 1900},
        {"role": "assistant", "tool_calls": [{"skill": [], "arguments": "[" * 1999}, 7]},
    ],
)
def test_an_entry_of_a_conversation_that_nobody_writes_is_told_as_it_is(
    tmp_path: Path, entry: dict[str, Any]
) -> None:
    talk = {"module": "agent", "skill": "say"}
    said = {"text": "the end", **entry}
    log = write_log(tmp_path / "a.lcmlog", [event(0, 1, "open", **talk), event(1, 2, "update", entry=said, **talk)])
    (line,) = recorded_of(log).lines
    assert said["text"].partition("\n")[0] in line.text
    assert line.text in reported(log)


@pytest.mark.feature("I3")
def test_a_report_has_what_people_say_and_call_and_not_how_programs_look_at_an_agent(tmp_path: Path) -> None:
    of_agent = {"module": "r/agent"}
    log = write_log(
        tmp_path / "a.lcmlog",
        [
            event(0, 1, "open", "review_call()", "a", skill="r_review_call", caller="bridge", **of_agent),
            event(1, 2, "close", "the call has begun", "a", skill="r_review_call", outcome="cancelled", **of_agent),
            event(2, 1, "open", "approvals()", "b", skill="r_approvals", caller="cli", **of_agent),
            event(3, 2, "close", "[{}]", "b", skill="r_approvals", caller="cli", outcome="completed", **of_agent),
            event(4, 1, "open", "report()", "c", skill="r_report", caller="monitor", **of_agent),
            event(4, 1, "open", "typing()", "f", skill="r_typing", caller="page", **of_agent),
            event(4, 1, "open", "plans()", "g", skill="r_plans", caller="cli", **of_agent),
            event(5, 1, "open", "decide(approve)", "d", skill="r_decide", caller="cli", **of_agent),
            event(6, 2, "close", "approved", "d", skill="r_decide", caller="cli", outcome="completed", **of_agent),
            event(7, 1, "open", "report()", "e", module="cook", skill="report", caller="cli"),
            event(8, 2, "close", "burnt", "e", module="cook", skill="report", outcome="failed"),
        ],
    )
    recorded = recorded_of(log)
    assert [line.text for line in recorded.lines] == ["decide(approve)", "approved", "report()", "failed: burnt"]
    assert [call.skill for call in recorded.calls] == ["r_decide", "report"]
    text = reported(log)
    assert "Timeline of 2 calls" in text
    assert "<dt>Calls</dt><dd>2</dd>" in text


def test_damage_gaps_and_foreign_messages_are_told(tmp_path: Path) -> None:
    events = [odometry(0, 0.0), odometry(1, 1.0), (START + 9_000_000, ODOM, b"nonsense"), event(10, 1, "open")]
    set_back = [(START - 50_000_000 + number, "FOREIGN", b"?") for number in range(2)]
    path = write_log(tmp_path / "a.lcmlog", [*events, *set_back])
    path.write_bytes(path.read_bytes() + b"garbage")
    page = _Page(reported(path))
    for said in (
        "The log does not describe itself",
        "7 bytes were left out",
        "At 0:01 nothing at all was recorded for 8.0 s",
        f"1 messages of {ODOM} can't be read",
        "In the log the clock goes back by 60.0 s at event 4; its times go on from there",
        "FOREIGN",
    ):
        assert said in page.text, said


@pytest.mark.slow
def test_a_long_recording_stays_within_the_bound(tmp_path: Path) -> None:
    events = []
    for number in range(600):
        call = f"call{number}"
        events.append(event(number, 1, "open", "x" * 900, call=call))
        events.append(event(number + 0.5, 2, "close", "y" * 900, call=call, outcome="completed", result="z" * 1500))
        events.append(odometry(number, number / 10))
    path = write_log(tmp_path / "a.lcmlog", events)
    assert len(reported(path).encode()) > LEAST_BYTES
    text = reported(path, max_bytes=LEAST_BYTES)
    assert len(text.encode()) <= LEAST_BYTES
    assert "more calls are not shown" in text
    assert "more lines are not shown" in text


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"this is no log at all", "is no LCM log"), (b"", "there is no event in")],
)
def test_what_is_no_recording_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, said: str
) -> None:
    path = tmp_path / "a.lcmlog"
    path.write_bytes(content)
    assert run_command(["recording", "report", str(path), "-o", str(tmp_path / "a.html")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "a.html").exists()


def test_the_log_itself_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "a.lcmlog"
    write_log(path, [(START, "/x#std_msgs.Bool", b"1")])
    with LogReader(path) as log, pytest.raises(UserError, match="the log itself"):
        write_report([log], path)
    assert run_command(["recording", "report", str(path), "-o", str(tmp_path / "none" / "a.html")]) == 2


def scan(at_s: float, near_m: float) -> tuple[int, str, bytes]:
    """A scan of a robot at 0, 0: walls 4.05 m away on all sides, and a person at ``near_m`` straight ahead."""
    ranges = [near_m if abs(angle - 180) <= 4 else 4.05 for angle in range(360)]
    step = math.tau / 360
    message = LaserScan(angle_min=-math.pi, angle_increment=step, range_min=0.1, range_max=10.0, ranges=ranges)
    return START + round(at_s * 1e6), SCAN, encode(message)


@pytest.mark.feature("I3")
@pytest.mark.parametrize("gone", [False, True], ids=["stands", "has gone"])
def test_who_has_walked_by_is_no_wall(gone: bool, tmp_path: Path) -> None:
    seen = [event for n in range(60) for event in (odometry(n, 0.0), scan(n, 4.05 if gone and n >= 30 else 2.05))]
    obstacles = set(recorded_of(write_log(tmp_path / "a.lcmlog", seen)).scene.obstacles)
    person = {(20, y) for y in (-2, -1, 0, 1)}
    assert person & obstacles == (set() if gone else person)
    walls = [cmath.rect(4.05, math.radians(angle)) for angle in range(0, 360, 10) if 10 < angle < 350]
    missed = [each for each in walls if (math.floor(each.real / 0.1), math.floor(each.imag / 0.1)) not in obstacles]
    assert not missed, "the walls stay, whatever rays graze them"


@pytest.mark.feature("I3")
def test_each_mission_has_its_heading_with_how_it_ended(tmp_path: Path) -> None:
    agent = {"module": "agent", "skill": "say"}

    def said(at_s: float, call: str, text: str) -> tuple[int, str, bytes]:
        return event(at_s, 2, "update", text, call, entry={"role": "operator", "text": text}, **agent)

    why = "the mission did not complete: call_cancelled (turn: enough)"
    cancelled, done = ({"text": "", "reason": reason} for reason in ("call_cancelled", "completed"))
    events = [
        *(event(0, 1, "open", "", "m1", **agent), said(0, "m1", "turn around")),
        *(event(1, 1, "open", "", "m2", **agent), said(1, "m2", "go home")),
        event(2, 3, "close", why, "m1", **agent, outcome="failed", result=cancelled),
        event(4, 3, "close", "home", "m2", **agent, outcome="completed", result=done),
        *(event(5, 1, "open", "", "m3", **agent), said(5, "m3", "dance")),
    ]
    text = reported(write_log(tmp_path / "a.lcmlog", events))
    headings = re.findall(r"<h3>(.*?)</h3><p class=\"quiet\">(.*?)</p>", text)
    assert headings == [
        ("turn around", "0:00 · cancelled (call cancelled) after 2.0 s"),
        ("go home", "0:01 · completed after 3.0 s"),
        ("dance", "0:05 · open at the end"),
    ]
    assert "<h1>turn around and 2 more missions</h1>" in text
    reason_at, next_at = text.index(why, text.index("<h3>")), text.index("go home</h3>")
    assert reason_at < next_at, "what is of a mission is below its heading, whatever came between"


@pytest.mark.feature("I3")
def test_the_timeline_calls_missions_by_what_was_said(tmp_path: Path) -> None:
    words = "drive to the kitchen and look for the red cup"
    events = [
        event(0, 1, "open", "", "m1", "r/agent", "r_say", arguments={"text": words}),
        event(1, 1, "open", "", "m1~1", arguments={"text": "no mission"}),
        event(2, 1, "open", "", "m2", "r/agent", "r_say", arguments={"text": 5}),
    ]
    text = reported(write_log(tmp_path / "a.lcmlog", events))
    drawing = text[text.index("<svg", text.index("Calls over time")) :]
    rows = re.findall(r'<g class="call"><title>(.*?), open: .*?</title><text.*?>(.*?)</text>', drawing)
    assert rows == [(f"“{words}”", "“drive to the kitchen and…"), ("go_to", "go_to"), ("r_say", "r_say")]


@pytest.mark.feature("I3")
def test_what_belongs_to_no_mission_is_not_below_the_heading_of_one(tmp_path: Path) -> None:
    events = [event(0, 1, "open", "by a stranger", "s0", caller="stranger")]
    for number, at_s in ((1, 1), (2, 4)):
        mission, words = f"m{number}", f"mission {number}"
        agent = {"module": "agent", "skill": "say"}
        entry = {"role": "operator", "text": words}
        events.append(event(at_s, 1, "open", "", mission, **agent))
        events.append(event(at_s, 2, "update", words, mission, entry=entry, **agent))
        events.append(event(at_s + 1, 1, "open", f"by a stranger after {number}", f"s{number}", caller="stranger"))
    late = {"role": "assistant", "text": "late word of 1"}
    events.append(event(6, 3, "update", "late word of 1", "m1", module="agent", skill="say", entry=late))
    page = _Page(reported(write_log(tmp_path / "a.lcmlog", events)))
    conversation = page.text[page.text.index("Conversation") :]
    outside = "Outside of a mission"
    order = [outside, "by a stranger", "mission 1", "mission 1", "late word of 1", outside, "by a stranger after 1"]
    order += ["mission 2", "mission 2", outside, "by a stranger after 2"]
    found = re.findall(f"{outside}|by a stranger(?: after .)?|mission .|late word of 1", conversation)
    assert found[: len(order)] == order
    alone = reported(write_log(tmp_path / "b.lcmlog", events[:1]))
    assert outside not in alone, "where there is no mission, nothing is outside of one"


@pytest.mark.feature("I3")
def test_numbers_and_places_that_no_drawing_has_are_left_out(tmp_path: Path) -> None:
    corners = [[1.7e308, 1.7e308], [1.6e308, 1.7e308], [1.7e308, 0]]
    blueprint = {"modules": {"agent": {"config": {"zones": [{"name": "far", "polygon": corners}]}}}}
    events = [
        (START, CHANNEL, Metadata(blueprint=blueprint).encoded()),
        event(0, 1, "open", "", arguments={"x": 10**400, "y": 1.0}),
        event(0, 1, "open", "", call="c2", arguments={"x": 1.7e308, "y": 1.7e308}),
        *(event(1, 2 + n, "progress", huge=(-1) ** n * 1.7e308, int=10**400, tiny=n * 2e-323) for n in range(2)),
    ]
    text = reported(write_log(tmp_path / "a.lcmlog", events))
    assert "go_to: tiny" in text
    assert "go_to: huge" not in text


def test_the_legend_has_the_colours_of_the_map_and_the_style_has_them_all(tmp_path: Path) -> None:
    poses = [(START, f"/r{number}/odom#nav_msgs.Odometry", odometry(0.0, 1.0)[2]) for number in range(COLOURS + 2)]
    text = reported(write_log(tmp_path / "a.lcmlog", poses))
    drawn, keys = (re.findall(rf'class="{kind} (c\d+)"', text) for kind in ("way", "key way"))
    assert drawn == keys == [f"c{number % COLOURS}" for number in range(COLOURS + 2)]
    assert all(f".key.{name}" in text for name in drawn)


def of_robot(at_s: float, topic: str, message: Message) -> tuple[int, str, bytes]:
    return START + round(at_s * 1e6), channel_name(topic, type(message)), encode(message)


@pytest.mark.parametrize("knows_modules", [False, True], ids=["foreign", "own"])
def test_what_stands_below_a_robots_namespace_is_the_robots(knows_modules: bool, tmp_path: Path) -> None:
    metadata = Metadata(blueprint={"modules": {"robot1/drive": {}}} if knows_modules else None)
    pose = PoseWithCovariance(pose=Pose(position=Point(x=1.0), orientation=Quaternion(w=1.0)))
    seen, unplaced, stamp = detected(Point(x=2.0)), detected(Point()), header("camera", START)
    pixels = image_from_array(np.zeros((8, 8, 3), np.uint8), JPEG, stamp)
    events = [
        (START, CHANNEL, metadata.encoded()),
        of_robot(0.0, "/robot1/odom", Odometry(pose=pose)),
        of_robot(0.0, "/robot1/camera/color_image", pixels),
        of_robot(0.1, "/robot1/camera/detections", Detection2DArray(header=stamp, detections=[seen, unplaced])),
        event(0.2, 1, "open", "go", module="robot1/drive"),
        event(0.4, 2, "close", "gone", module="robot1/drive", outcome="failed"),
    ]
    recorded = recorded_of(write_log(tmp_path / "a.lcmlog", events))
    assert set(recorded.ways) == {"robot1"}
    assert recorded.scene.people == {"person": [(3.0, 0.0)]}, "one whose place is not known is nowhere"
    (frame,) = recorded.frames
    assert [box.label for box in frame.boxes] == ["7 person", "7 person"]
    drawing = map_figure(recorded)
    assert drawing is not None
    assert [each for each in drawing.iter() if each.get("class") == "mark"], "the picture is on the robot's way"


def test_a_time_that_is_no_date_is_said_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path / "a.lcmlog", [(2**62, ODOM, odometry(0, 1)[2])])
    assert "4611686018427387904 µs, which is no date" in reported(log)
    assert run_command(["recording", "info", str(log)]) == 0
    assert "4611686018427387904 µs, which is no date" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.feature("I3")
@pytest.mark.parametrize("place", ["name", "zone", "corners", "channels"])
def test_no_single_text_or_polygon_makes_a_page_too_large(place: str, tmp_path: Path) -> None:
    long = "x" * 4_000_000 if place in ("name", "zone") else "x"
    corners = [[n % 7, n % 5] for n in range(100_000 if place == "corners" else 4)]
    agent = {"config": {"zones": [{"name": long, "polygon": corners}]}}
    choice = Choice(include=("<b>",) * (400_000 if place == "channels" else 1))
    metadata = Metadata(blueprint={"name": long, "modules": {"agent": agent}}, channels=(choice,))
    log = write_log(tmp_path / "a.lcmlog", [(START, CHANNEL, metadata.encoded()), odometry(0, 0), odometry(1, 1)])
    assert len(reported(log, max_bytes=LEAST_BYTES)) <= LEAST_BYTES


@pytest.mark.parametrize(
    ("reason", "shown"),
    [("call_cancelled", "cancelled"), ("aborted", "cancelled"), ("stopped", "failed"), (["aborted"], "failed")],
)
def test_a_mission_that_an_operator_has_ended_is_shown_as_cancelled(tmp_path: Path, reason: Any, shown: str) -> None:
    mission: dict[str, Any] = {"call": "m1", "module": "agent", "skill": "say"}
    end: dict[str, Any] = {"outcome": "failed", "result": {"reason": reason}}
    events = [event(0, 1, "open", "said", **mission), event(2, 2, "close", "it did not complete", **mission, **end)]
    log = write_log(tmp_path / "a.lcmlog", events)
    text = reported(log)
    assert [name for name in ("cancelled", "failed") if f'class="bar {name}"' in text] == [shown]
    assert [name for name in ("cancelled", "failed") if f'class="outcome {name}"' in text] == [shown]
    assert recorded_of(log).lines[-1].is_error == (shown == "failed")
