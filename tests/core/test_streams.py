"""Inputs and outputs: back-pressure, ages, damaged payloads."""

from __future__ import annotations

import asyncio
import math
from typing import Any, ClassVar

import pytest

from dimos_streams.agent.module import Agent
from dimos_streams.bus import Bus, create_bus
from dimos_streams.errors import BusError, DimosStreamsError, UserError
from dimos_streams.messages.codec import channel_name, encode
from dimos_streams.messages.geometry_msgs import Point, Pose, PoseStamped, Quaternion, Twist
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.odometry import OdometryFromPoses, pose_fault
from dimos_streams.messages.std_msgs import String
from dimos_streams.messages.time import header
from dimos_streams.module import Module
from dimos_streams.perception.module import PersonDetector
from dimos_streams.robot.velocity_gate.module import VelocityGate
from dimos_streams.skills.drive import Drive
from dimos_streams.skills.follow_person import FollowPerson
from dimos_streams.skills.observe import Observe
from dimos_streams.skills.patrol import Patrol
from dimos_streams.streams import In, Out, declared_streams
from tests.helpers import run_virtual


class Node(Module):
    latest: In[String]
    queued: In[String] = In(required=False, queue=3)
    rare: In[String] = In(required=False, on_demand=True)
    out: Out[String]


async def opened() -> tuple[Bus, Node]:
    bus = create_bus("memq://")
    await bus.open()
    node = Node()
    node.latest.connect(bus, "/latest")
    node.queued.connect(bus, "/queued")
    node.out.connect(bus, "/out")
    return bus, node


def send(bus: Bus, topic: str, text: str) -> None:
    bus.publish(channel_name(topic, String), encode(String(data=text)))


def test_declarations() -> None:
    specs = declared_streams(Node)
    assert [(s.name, s.direction, s.required, s.queue) for s in specs.values()] == [
        ("latest", "in", True, 1),
        ("queued", "in", False, 3),
        ("rare", "in", False, 1),
        ("out", "out", False, 1),
    ]
    assert Node().latest is not Node().latest


@pytest.mark.virtual_time
async def test_a_queue_drops_the_oldest_and_counts_it() -> None:
    bus, node = await opened()
    reader = node.queued.reader()
    for number in range(5):
        send(bus, "/queued", str(number))
    await asyncio.sleep(0)
    assert [(await reader.next()).data for _ in range(3)] == ["2", "3", "4"]
    assert node.queued.statistics().dropped == 2
    assert node.queued.statistics().received == 5


class Walker(Module):
    odom: In[Odometry] = In(also=OdometryFromPoses)


def pose_at(x: float, utime: int) -> PoseStamped:
    pose = Pose(position=Point(x=x), orientation=Quaternion(w=1.0))
    return PoseStamped(header=header("world", utime), pose=pose)


@pytest.mark.virtual_time
@pytest.mark.parametrize("kind", [RuntimeError, asyncio.CancelledError])
async def test_a_callback_that_fails_keeps_no_message_from_the_others(
    kind: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    bus, node, heard = create_bus("memq://"), Node(), list[str]()
    await bus.open()
    node.latest.connect(bus, "/latest")

    def break_first(message: String) -> None:
        raise kind("the first is broken")

    def break_second(message: String) -> None:
        raise ValueError("the second is broken")

    for callback in (break_first, break_second, lambda message: heard.append(message.data)):
        node.latest.on_message(callback)
    for word in "abc":
        bus.publish(channel_name("/latest", String), encode(String(data=word)))
    await asyncio.sleep(0.1)
    assert heard == ["a", "b", "c"]
    (subscription,) = bus.subscriptions()
    assert subscription.statistics().errors == 3
    assert "the first is broken" in caplog.text
    assert "the second is broken" in caplog.text


def test_a_callback_that_would_never_run_is_refused() -> None:
    async def never(message: String) -> None:
        raise AssertionError(message)

    with pytest.raises(UserError, match=r"^on_message\(.*never\) is asynchronous; .*: make it a plain `def`$"):
        Node().latest.on_message(never)  # type: ignore[arg-type]


@pytest.mark.virtual_time
async def test_an_input_takes_a_second_type_as_what_the_conversion_makes_of_it() -> None:
    bus, walker = create_bus("memq://"), Walker()
    await bus.open()
    walker.odom.connect(bus, "/odom")
    heard: list[Odometry] = []
    walker.odom.on_message(heard.append)

    async def send_pose(x: float, utime: int) -> None:
        bus.publish(channel_name("/odom", PoseStamped), encode(pose_at(x, utime)))
        await asyncio.sleep(0.1)

    await send_pose(1.0, 1_000_000)
    await send_pose(1.2, 1_100_000)
    assert [(one.pose.pose.position.x, round(one.twist.twist.linear.x, 3)) for one in heard] == [
        (1.0, 0.0),
        (1.2, 2.0),
    ]
    assert (heard[0].header.frame_id, heard[0].child_frame_id) == ("world", "base_link")
    bus.publish(channel_name("/odom", Odometry), encode(Odometry()))
    await send_pose(1.4, 1_200_000)
    assert len(heard) == 3, "while its own type comes, the other is left out"
    await asyncio.sleep(1.0)
    await send_pose(1.5, 2_300_000)
    bus.publish(channel_name("/odom", PoseStamped), b"\x80\x05 pickled")
    await asyncio.sleep(0.1)
    assert (len(heard), walker.odom.statistics().malformed) == (4, 1)
    walker.odom.disconnect()
    await send_pose(1.6, 2_400_000)
    assert len(heard) == 4
    assert bus.subscriptions() == []


class Careful(Module):
    odom: In[Odometry] = In(also=OdometryFromPoses, fault=pose_fault)


@pytest.mark.virtual_time
async def test_what_fails_an_inputs_test_hides_nothing(caplog: pytest.LogCaptureFixture) -> None:
    bus, careful = create_bus("memq://"), Careful()
    await bus.open()
    careful.odom.connect(bus, "/odom")
    heard: list[Odometry] = []
    careful.odom.on_message(heard.append)
    reader = careful.odom.reader()

    def send_own(x: float) -> None:
        odometry = Odometry()
        odometry.pose.pose = pose_at(x, 1).pose
        bus.publish(channel_name("/odom", Odometry), encode(odometry))

    send_own(math.nan)
    bus.publish(channel_name("/odom", PoseStamped), encode(pose_at(1.0, 1_000_000)))
    bus.publish(channel_name("/odom", PoseStamped), encode(pose_at(math.inf, 1_100_000)))
    await asyncio.sleep(0.1)
    assert [one.pose.pose.position.x for one in heard] == [1.0], (
        "an own one that can't be is no reason to leave out others"
    )
    send_own(2.0)
    send_own(math.nan)
    await asyncio.sleep(0.1)
    assert (careful.odom.latest, careful.odom.age()) == (heard[-1], 0.1)
    assert (await reader.next()).pose.pose.position.x == 2.0
    assert (len(heard), careful.odom.statistics().malformed) == (2, 3)
    assert "on /odom#nav_msgs.Odometry: its position is not a number" in caplog.text
    await bus.close()


class Watchful(Module):
    odom: In[Odometry] = In(also=OdometryFromPoses, fresh=True)


@pytest.mark.virtual_time
async def test_what_repeats_one_stamp_counts_as_silence(caplog: pytest.LogCaptureFixture) -> None:
    bus, watchful = create_bus("memq://"), Watchful()
    await bus.open()
    watchful.odom.connect(bus, "/odom")

    async def took(message: Odometry | PoseStamped) -> bool:
        before = watchful.odom.statistics().received
        bus.publish(channel_name("/odom", type(message)), encode(message))
        await asyncio.sleep(0.1)
        return watchful.odom.statistics().received > before

    assert await took(Odometry(header=header("odom", 5)))
    assert not await took(Odometry(header=header("odom", 5)))
    assert watchful.odom.age() == pytest.approx(0.2)
    assert watchful.odom.skipped(0.5) == "it repeats one stamp, as a frozen sensor does"
    assert await took(Odometry(header=header("odom", 4))), "a clock may be set back"
    assert not watchful.odom.skipped(0.5)
    assert await took(Odometry())
    assert await took(Odometry()), "where nobody knows a stamp it is 0"
    await asyncio.sleep(1.0)
    assert await took(pose_at(1.0, 7))
    assert not await took(pose_at(1.0, 7))
    assert (watchful.odom.statistics().malformed, caplog.text) == (0, "")
    await bus.close()


def test_only_what_has_stamps_can_be_fresh() -> None:
    class Odd(Module):
        text: In[String] = In(fresh=True)

    with pytest.raises(TypeError, match=r"Odd\.text: In\(fresh=True\) needs a type with a header"):
        declared_streams(Odd)


@pytest.mark.parametrize("module", [VelocityGate, Drive, FollowPerson, Patrol, Observe, PersonDetector, Agent])
def test_stock_modules_take_frozen_odometry_and_scans_for_silence(module: type[Module]) -> None:
    measured = [spec for name, spec in module.streams().items() if name in ("odom", "scan")]
    assert measured
    assert all(spec.fresh for spec in measured)


class IsAhead:
    def __call__(self, odometry: Odometry) -> str:
        return "" if odometry.pose.pose.position.x > 0 else "it is behind"


class Forward(Module):
    odom: In[Odometry] = In(fault=IsAhead())


@pytest.mark.virtual_time
async def test_an_inputs_test_may_be_any_callable() -> None:
    bus, forward = create_bus("memq://"), Forward()
    await bus.open()
    forward.odom.connect(bus, "/odom")
    bus.publish(channel_name("/odom", Odometry), encode(Odometry()))
    await asyncio.sleep(0.1)
    assert (forward.odom.latest, forward.odom.statistics().malformed) == (None, 1)
    assert bus.statistics().errors == 0
    await bus.close()


@pytest.mark.virtual_time
async def test_the_latest_wins_and_knows_its_age() -> None:
    bus, node = await opened()
    assert (node.latest.latest, node.latest.age()) == (None, None)
    send(bus, "/latest", "old")
    send(bus, "/latest", "new")
    assert (await node.latest.next()).data == "new"
    await asyncio.sleep(1.5)
    assert node.latest.age() == pytest.approx(1.5)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(node.latest.next(), 1)


@pytest.mark.virtual_time
async def test_two_loops_over_one_input_both_get_all() -> None:
    bus, node = await opened()
    got: dict[str, list[str]] = {"a": [], "b": []}

    async def read(name: str) -> None:
        async for message in node.queued:
            got[name].append(message.data)

    tasks = [asyncio.create_task(read(name)) for name in got]
    await asyncio.sleep(0)
    for text in ("x", "y"):
        send(bus, "/queued", text)
    await asyncio.sleep(0.1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert got == {"a": ["x", "y"], "b": ["x", "y"]}


@pytest.mark.virtual_time
async def test_an_input_on_demand_receives_only_while_somebody_listens() -> None:
    bus, node = await opened()
    node.rare.connect(bus, "/rare")
    channel = channel_name("/rare", String)
    assert node.rare.wired
    assert not bus.has_subscribers(channel)
    for text in ("first", "second"):
        send(bus, "/rare", "missed")
        with node.rare.listening():
            send(bus, "/rare", text)
            assert (await node.rare.next()).data == text
            with node.rare.listening():
                pass
            assert bus.has_subscribers(channel)
        assert not bus.has_subscribers(channel)
        assert node.rare.latest is None


@pytest.mark.virtual_time
async def test_an_input_on_demand_is_subscribed_again_after_a_bus_that_refused() -> None:
    bus, node = await opened()
    node.rare.connect(bus, "/rare")
    await bus.close()
    with pytest.raises(BusError), node.rare.listening():
        pass
    await bus.open()
    with node.rare.listening():
        send(bus, "/rare", "heard")
        assert (await node.rare.next()).data == "heard"
    assert not bus.has_subscribers(channel_name("/rare", String))


def test_damaged_payloads_are_skipped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        bus, node = await opened()
        for size in range(12):
            bus.publish("/latest#std_msgs.String", encode(String(data="abc"))[:size])
        send(bus, "/latest", "good")
        assert (await node.latest.next()).data == "good"
        assert node.latest.statistics().malformed == 12

    run_virtual(scenario())
    assert caplog.text.count("/latest#std_msgs.String") == 1
    assert "std_msgs.String" in caplog.text


@pytest.mark.virtual_time
async def test_outputs_refuse_what_they_are_not_for() -> None:
    bus, node = await opened()
    with pytest.raises(TypeError, match=r"output 'out' takes std_msgs\.String, not Twist"):
        node.out.publish(Twist())  # type: ignore[arg-type]
    assert not node.out.wanted
    bus.subscribe("/out#std_msgs.String", lambda channel, data: None)
    assert node.out.wanted
    node.out.disconnect()
    with pytest.raises(DimosStreamsError, match="output 'out' is not connected"):
        node.out.publish(String())


def test_a_module_needs_its_streams_typed() -> None:
    class Untyped(Module):
        words: In  # type: ignore[type-arg]

    with pytest.raises(TypeError, match=r"Untyped\.words must name an LCM message type"):
        declared_streams(Untyped)


class _Optional(Module):
    words: In[String] | None = None


class _Several(Module):
    words: ClassVar[dict[str, list[Out[String]]]] = {}


class _Valued(Module):
    words: In()  # type: ignore[valid-type]


class _Bare(Module):
    words = In()  # type: ignore[var-annotated]


@pytest.mark.parametrize(
    ("owner", "why"),
    [
        (
            _Optional,
            r"_Optional\.words: a stream is declared by itself, and not as .*; In\(required=False\)",
        ),
        (_Several, r"_Several\.words: a stream is declared by itself"),
        (_Valued, r"_Valued\.words: In\(…\) is no type; valid: words: In\[Twist\] = In\(…\)"),
        (_Bare, r"_Bare\.words needs a type, as in words: In\[Twist\] = In\(\)"),
    ],
)
def test_what_would_be_no_stream_without_a_word(owner: type[Module], why: str) -> None:
    with pytest.raises(TypeError, match=why):
        owner.streams()


@pytest.mark.parametrize(
    ("kind", "given", "options", "why"),
    [
        (
            In,
            (),
            {"optional": True},
            "In(optional=True): there is no option 'optional' (valid: required, queue, on_demand, external, also,",
        ),
        (
            In,
            (),
            {"require": False},
            "In(require=False): there is no option 'require'; did you mean 'required'? (valid",
        ),
        (In, (), {"queue": 0}, "In(queue=0): it must be a whole number of at least 1"),
        (In, (), {"queue": "3"}, "In(queue='3'): it must be a whole number of at least 1"),
        (In, (String,), {}, "In(String) takes options alone: the type of its messages is in brackets, In[String]"),
        (Out, (String,), {}, "Out(String) takes options alone: the type of its messages is in brackets, Out[String]"),
        (Out, (), {"queue": 3}, "Out(queue=3): there is no option 'queue' (valid: none)"),
    ],
)
def test_what_a_declaration_can_not_take_is_refused_with_what_it_can(
    kind: Any, given: tuple[Any, ...], options: dict[str, Any], why: str
) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        kind(*given, **options)
    assert str(refused.value).startswith(why)
