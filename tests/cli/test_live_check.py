"""check --live: what a blueprint needs, beside what is on the bus. In virtual time, but for one of real processes."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest

from dimos_streams import clock
from dimos_streams.blueprint import Blueprint, blueprint, module
from dimos_streams.blueprint.load import resolve
from dimos_streams.bus.memory import MemoryBus
from dimos_streams.cli.live_check.live_check import check_live
from dimos_streams.cli.live_check.report import LiveReport
from dimos_streams.clock import VIRTUAL_EPOCH_US, run_virtual
from dimos_streams.messages.base import Message
from dimos_streams.messages.codec import channel_name, encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.messages.geometry_msgs import Point, Pose, PoseStamped, PoseWithCovariance, Quaternion
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.sensor_msgs import Image, LaserScan
from dimos_streams.messages.std_msgs import String
from dimos_streams.messages.time import header
from dimos_streams.messages.vision_msgs import Detection2D, Detection2DArray
from dimos_streams.perception.module import PersonDetector
from dimos_streams.robot.velocity_gate.module import VelocityGate
from dimos_streams.skills.drive import Drive
from dimos_streams.skills.follow_person import FollowPerson
from dimos_streams.skills.observe import Observe
from dimos_streams.tool_stream.liveness.heartbeat import ENDED

pytestmark = pytest.mark.feature("K3")

OUTSIDE = ("odom#nav_msgs.Odometry", "scan#sensor_msgs.LaserScan", "detections#vision_msgs.Detection2DArray")
SKILLS = blueprint(
    "skills",
    module(VelocityGate, name="gate"),
    module(Drive, name="drive", remap={"cmd_vel": "skill_vel"}),
    module(FollowPerson, name="follow", remap={"cmd_vel": "skill_vel"}),
    external=OUTSIDE,
)


@dataclass(frozen=True)
class Source:
    """Something that publishes."""

    topic: str
    make: Callable[[int], Message]
    """From the stamp, µs."""
    hz: float = 10.0
    clock_s: float = 0.0
    """How far its clock is ahead."""
    until_s: float = float("inf")
    after_s: float = 0.0

    def after(self, seconds: float) -> Source:
        """The same, beginning later."""
        return replace(self, after_s=seconds)

    async def run(self, bus: MemoryBus) -> None:
        await asyncio.sleep(self.after_s)
        began = clock.monotonic()
        while clock.monotonic() < began + self.until_s:
            message = self.make(clock.utime() + round(self.clock_s * 1e6))
            await asyncio.sleep(0.004)  # its way
            bus.publish(channel_name(self.topic, type(message)), encode(message))
            await asyncio.sleep(1 / self.hz - 0.004)


AT_REST = Pose(orientation=Quaternion(w=1.0))


def odometry(stamp: int, pose: Pose = AT_REST, frame: str = "odom") -> Message:
    return Odometry(header=header(frame, stamp), child_frame_id="base_link", pose=PoseWithCovariance(pose=pose))


def scan(stamp: int, frame: str = "base_link", apart: float = 0.1, furthest: float = 10.0) -> Message:
    return LaserScan(header=header(frame, stamp), angle_increment=apart, range_max=furthest, ranges=[5.0] * 60)


def detections(stamp: int) -> Message:
    return Detection2DArray(header=header("base_link", stamp))


def beat(name: str, ends_s: float = 10.0) -> Source:
    ends = VIRTUAL_EPOCH_US + round(ends_s * 1e6)

    def status(stamp: int) -> Message:
        return ModuleStatus(utime=stamp, module=name, instance="1", health="ok" if stamp < ends else ENDED)

    return Source("/module_status", status, 4)


ODOM, SCAN, DETECTIONS = Source("/odom", odometry, 20), Source("/scan", scan), Source("/detections", detections)
ALL = (ODOM, SCAN, DETECTIONS)


def checked(sources: Sequence[Source], of: Blueprint = SKILLS, motors: bool = True) -> LiveReport:
    async def scenario() -> LiveReport:
        bus = MemoryBus()
        await bus.open()
        if motors:
            bus.subscribe("/cmd_vel#geometry_msgs.Twist", lambda channel, data: None)
        tasks = [asyncio.ensure_future(source.run(bus)) for source in sources]
        try:
            return await check_live(of, bus, 5.0)
        finally:
            for task in tasks:
                task.cancel()
            await bus.close()

    return run_virtual(scenario())


def states(report: LiveReport) -> dict[str, str]:
    return {row.need.topic: row.state.value for row in report.rows}


def texts(report: LiveReport) -> list[str]:
    return [problem.text for problem in report.problems]


def test_a_robot_that_has_everything_is_described() -> None:
    report = checked(ALL)
    assert texts(report) == []
    cells = {row[0]: row[1:] for row in report.table()}
    assert cells["/odom"] == ("ok", "20.0 Hz", "4 ms", "odom > base_link", "outside", "drive, follow?")
    assert cells["/scan"] == ("ok", "10.0 Hz", "4 ms", "base_link", "outside", "gate?, drive?, follow?")
    assert cells["/hold"] == ("absent", "", "", "", "outside", "gate?, drive?, follow?")
    assert cells["/skill_vel"] == ("not running", "", "", "", "drive, follow", "gate?")
    assert "/teleop_vel" not in cells  # nobody wires it
    (odom,) = [topic for topic in report.to_dict()["topics"] if topic["topic"] == "/odom"]
    assert odom["state"] == "ok"
    assert odom["rate_hz"] == pytest.approx(20)
    assert odom["delay_s"] == pytest.approx(0.004)
    assert odom["inputs"][0] == {"name": "drive.odom", "required": True, "longest_gap_s": 0.5}


def test_what_is_missing_is_named_with_what_is_like_it() -> None:
    report = checked([Source("/base/odometry", odometry), SCAN, Source("/detection", detections)])
    assert states(report)["/odom"] == "missing"
    missing = [
        "/odom is missing: drive.odom would take nav_msgs.Odometry or geometry_msgs.PoseStamped; "
        "/base/odometry has that type: remap drive.odom to it",
        "/detections is missing: follow.detections would take vision_msgs.Detection2DArray; "
        "/detection has that type: remap follow.detections to it",
    ]
    assert texts(report) == missing
    assert [problem.severity for problem in report.problems] == ["error", "error"]


def test_an_optional_input_that_is_missing_is_a_warning() -> None:
    report = checked([ODOM, DETECTIONS])
    (problem,) = report.problems
    assert (problem.severity, states(report)["/scan"]) == ("warning", "absent")
    assert "/scan is missing: gate.scan, drive.scan, follow.scan would take sensor_msgs.LaserScan" in problem.text


def test_a_scan_without_rays_is_named() -> None:
    report = checked([ODOM, DETECTIONS, Source("/scan", lambda stamp: LaserScan(header=header("base_link", stamp)))])
    (problem,) = report.problems
    assert (problem.severity, states(report)["/scan"]) == ("warning", "no rays")
    assert problem.text == (
        "/scan has no rays: `ranges` is empty: it counts as no scan, and the velocity gate only lets the robot turn"
    )


def test_the_second_type_that_an_input_takes_will_do() -> None:
    report = checked(
        [
            Source("/odom", lambda stamp: PoseStamped(header=header("world", stamp), pose=AT_REST), 20),
            SCAN,
            DETECTIONS,
        ]
    )
    assert texts(report) == []
    assert [row[1:5] for row in report.table() if row[0] == "/odom"] == [("ok", "20.0 Hz", "4 ms", "world")]


def test_another_type_is_named() -> None:
    report = checked([Source("/detections", lambda stamp: String(data="person")), ODOM, SCAN])
    assert states(report)["/detections"] == "other type"
    assert (
        "/detections is there, as std_msgs.String, but follow.detections takes vision_msgs.Detect" in texts(report)[0]
    )


@pytest.mark.parametrize(("hz", "state"), [(1.0, "too slow"), (4.0, "ok")])
def test_what_comes_too_seldom_for_a_skill_is_an_error(hz: float, state: str) -> None:
    report = checked([Source("/odom", odometry, hz), SCAN, DETECTIONS])
    assert states(report)["/odom"] == state
    slow = "/odom is too slow, a message every 1.00 s: drive.odom takes 0.5 s without it at most"
    assert texts(report) == ([slow] if state != "ok" else [])


def test_what_falls_silent_is_an_error() -> None:
    report = checked([Source("/odom", odometry, 20, until_s=3), SCAN, DETECTIONS])
    assert texts(report) == ["/odom fell silent 2.0 s ago: drive.odom takes 0.5 s without it at most"]


def test_pauses_are_a_warning_where_the_mean_is_well() -> None:
    report = checked([Source("/odom", odometry, 20, until_s=2), ODOM.after(2.8), SCAN, DETECTIONS])
    (problem,) = report.problems
    assert (problem.severity, states(report)["/odom"]) == ("warning", "ok")
    assert problem.text == "/odom has gaps of up to 0.85 s: drive.odom takes 0.5 s without it at most"


@pytest.mark.slow
def test_a_bus_full_of_other_topics_hides_nothing() -> None:
    others = [Source(f"/other{number}", odometry, 0.1) for number in range(2100)]
    assert texts(checked([*others, *(each.after(1.0) for each in ALL)])) == []


def test_a_frozen_sensor_is_an_error() -> None:
    report = checked([Source("/detections", lambda stamp: detections(1_600_000_000_000_000)), ODOM, SCAN])
    assert states(report)["/detections"] == "frozen"
    assert "/detections repeats one stamp" in texts(report)[0]


def test_clocks_that_differ_are_said() -> None:
    ahead = [Source("/odom", odometry, 20, clock_s=3), Source("/scan", scan, clock_s=3), DETECTIONS]
    report = checked(ahead)
    (problem,) = report.problems
    assert problem.severity == "warning"
    assert "/scan by 3.00 s ahead, /odom by 3.00 s ahead; " in problem.text
    assert "these differ among themselves" in problem.text
    assert [row[3] for row in report.table() if row[0] == "/odom"] == ["clock 3.00 s ahead"]
    behind = checked([Source(each.topic, each.make, each.hz, clock_s=-60) for each in ALL])
    assert "/odom by 60.00 s behind" in texts(behind)[0]
    assert "differ among themselves" not in texts(behind)[0]


def test_what_can_not_be_read_is_an_error() -> None:
    seeing = blueprint(
        "seeing", module(Observe, name="observe"), external=("color_image#sensor_msgs.Image", OUTSIDE[2])
    )
    raw = Source(
        "/color_image", lambda stamp: Image(header=header("cam", stamp), encoding="yuv422", height=1, width=2)
    )
    unlabelled = Source(
        "/detections", lambda stamp: Detection2DArray(header=header("b", stamp), detections=[Detection2D()])
    )
    report = checked([raw, unlabelled], seeing)
    assert states(report) == {"/detections": "unreadable", "/color_image": "unreadable"}
    assert "its detections have no labels" in texts(report)[0]
    assert "/color_image: its encoding 'yuv422' can't be read (known: jpeg, rgb8" in texts(report)[1]
    assert report.rows[1].heard is not None
    assert list(report.rows[1].heard.contents) == ["yuv422 2x1", "cam"]

    async def garbage() -> LiveReport:
        bus = MemoryBus()
        await bus.open()
        asyncio.get_running_loop().call_later(1, bus.publish, f"/{OUTSIDE[2]}", b"\x80\x04\x95pickled")
        return await check_live(seeing, bus, 2.0)

    assert "/detections can't be read: its fingerprint is 8004957069636b6c" in texts(run_virtual(garbage()))[0]


def test_what_the_inputs_own_test_refuses_can_not_be_read() -> None:
    nowhere = Pose(position=Point(x=math.nan), orientation=Quaternion(w=1.0))
    report = checked([Source("/odom", lambda stamp: odometry(stamp, nowhere), 20), SCAN, DETECTIONS])
    (problem,) = report.problems
    assert (problem.severity, states(report)["/odom"]) == ("error", "unreadable")
    assert problem.text == "/odom can't be read: its position is not a number"
    lost = Pose(orientation=Quaternion(w=math.nan))
    poses = Source("/odom", lambda stamp: PoseStamped(header=header("world", stamp), pose=lost), 20)
    assert texts(checked([poses, SCAN, DETECTIONS])) == ["/odom can't be read: its orientation is not a number"]
    (unturned,) = texts(checked([Source("/odom", lambda stamp: odometry(stamp, Pose()), 20), SCAN, DETECTIONS]))
    assert unturned.startswith("/odom can't be read: its orientation is all zero, ")


def test_garbage_among_the_messages_is_an_error_if_there_is_much_of_it() -> None:
    def among(every: int) -> LiveReport:
        async def scenario() -> LiveReport:
            bus = MemoryBus()
            await bus.open()
            bus.subscribe("/cmd_vel#geometry_msgs.Twist", lambda channel, data: None)
            sources = [asyncio.ensure_future(source.run(bus)) for source in (SCAN, DETECTIONS)]

            async def send() -> None:
                for number in range(1000):
                    bus.publish(f"/{OUTSIDE[0]}", encode(odometry(clock.utime())))
                    if number % every == 0:
                        bus.publish(f"/{OUTSIDE[0]}", b"\x80\x04hello")
                    await asyncio.sleep(0.05)

            sources.append(asyncio.ensure_future(send()))
            try:
                return await check_live(SKILLS, bus, 5.0)
            finally:
                for task in sources:
                    task.cancel()
                await bus.close()

        return run_virtual(scenario())

    half, few = among(1), among(20)
    assert (states(half)["/odom"], half.problems[0].severity) == ("unreadable", "error")
    assert "/odom: 50% of its messages can't be read: its " in texts(half)[0]
    assert (states(few)["/odom"], few.problems[0].severity) == ("ok", "warning")
    assert "/odom: 5% of its messages can't be read: its " in texts(few)[0]


@pytest.mark.parametrize(
    ("topic", "make", "doubt"),
    [
        ("/odom", lambda stamp: odometry(stamp, Pose(orientation=Quaternion(z=90.0))), "its orientation is no unit"),
        ("/odom", lambda stamp: odometry(stamp, frame="base_link"), "it is the pose of 'base_link' in itself"),
        ("/scan", lambda stamp: scan(stamp, "laser"), "its frame is 'laser', but its angles are taken for"),
        ("/scan", lambda stamp: scan(stamp, apart=3.0), "its rays, 3 rad apart, go round more than once"),
        ("/scan", lambda stamp: scan(stamp, furthest=10000.0), "its range_max is 10000 m"),
    ],
)
def test_what_is_hardly_so_is_a_warning(topic: str, make: Callable[[int], Message], doubt: str) -> None:
    others = [source for source in ALL if source.topic != topic]
    report = checked([Source(topic, make, 20), *others])
    (problem,) = report.problems
    assert (problem.severity, states(report)[topic]) == ("warning", "doubtful")
    assert problem.text.startswith(f"{topic}: {doubt}")


def test_what_is_too_slow_is_called_so_whoever_needs_it_and_as_often_as_the_table_says() -> None:
    report = checked([ODOM, Source("/scan", scan, 0.2).after(4.0), DETECTIONS])
    assert [row[1:3] for row in report.table() if row[0] == "/scan"] == [("too slow", "0.2 Hz")]
    slow = (
        "/scan is too slow, a message every 5.00 s: gate.scan, drive.scan, follow.scan take 0.5 s without it at most"
    )
    assert [(problem.severity, problem.text) for problem in report.problems] == [("warning", slow)]


def test_what_is_there_and_not_wired_is_told() -> None:
    report = checked(ALL, blueprint("deaf", module(Drive, name="drive"), external=OUTSIDE[:1]))
    assert texts(report) == [
        "/scan is there, but drive.scan would not hear it: add '/scan#sensor_msgs.LaserScan' to external"
    ]


def test_a_velocity_that_nobody_takes_moves_no_robot() -> None:
    assert texts(checked(ALL, motors=False)) == ["nobody listens to /cmd_vel: what gate.cmd_vel says moves no robot"]


def test_modules_that_do_not_run_are_no_fault_before_the_run_and_one_while_it_lasts() -> None:
    seen = blueprint(
        "seen",
        module(PersonDetector, name="detector"),
        module(FollowPerson, name="follow"),
        external=(
            "instances#sensor_msgs.Image",
            "instance_labels#std_msgs.String",
            "camera_info#sensor_msgs.CameraInfo",
        ),
    )
    before = checked([], seen)
    assert states(before)["/detections"] == "not running"
    assert not any("/detections" in text for text in texts(before))
    during = checked([beat("follow")], seen)
    assert "/detections is missing: detector is not running" in texts(during)
    ended = checked([beat("follow"), beat("detector", ends_s=4)], seen)
    assert "/detections is missing: detector is not running" in texts(ended)
    silent = checked([beat("follow"), beat("detector")], seen)
    assert "/detections is missing: follow.detections would take vision_msgs.Detection2DArray" in texts(silent)
    assert {"/instances", "/camera_info"} <= {row.need.topic for row in before.rows if row.state.value == "missing"}


def test_a_run_that_nobody_has_started_is_told_of() -> None:
    report = checked([], resolve("robot-only"))
    assert "no module of 'robot-only' is alive on memq://, and none needs anything from outside" in texts(report)[0]
