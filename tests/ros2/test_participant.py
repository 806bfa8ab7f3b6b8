"""One participant of DDS, on its own: what comes in can't make it deaf."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.errors import MessageError
from dimos_streams.messages.std_msgs import UInt32
from dimos_streams.ros2 import participant as module
from dimos_streams.ros2.deafness import Returns
from dimos_streams.ros2.layout import struct_of
from dimos_streams.ros2.participant import Participant
from dimos_streams.ros2.wire import DEFAULT, DdsError
from tests.helpers import no_threads, until

pytest.importorskip("cyclonedds", reason="the extra `ros2` is not installed")
pytestmark = [pytest.mark.live, pytest.mark.feature("G4")]

TYPE = struct_of(UInt32)
HEAD = b"\x00\x01\x00\x00"


class _DamagedWaitSet:
    """Fails as one of Cyclone's can."""

    def wait(self, _: int) -> None:
        raise OSError("out of everything")


def run(scenario: Callable[[Participant], Any]) -> None:
    async def whole() -> None:
        participant = Participant(103)
        await participant.open()
        try:
            await scenario(participant)
        finally:
            await participant.close()

    asyncio.run(whole())


@pytest.mark.parametrize("fault", [ValueError, MemoryError, RecursionError, MessageError])
def test_what_can_not_be_read_costs_that_message_only(
    fault: type[Exception], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_log", LimitedLog(logging.getLogger(module.__name__)))

    def decode(data: bytes) -> bytes:
        if data[4:] == b"bad!":
            raise fault("", "a", "b") if fault is MessageError else fault("no")
        return data[4:]

    async def scenario(participant: Participant) -> None:
        heard: list[bytes] = []
        topics = {name: participant.writer(name, TYPE, DEFAULT) for name in ("rt/one", "rt/two")}
        readers = [participant.reader(name, TYPE, DEFAULT, decode, heard.append) for name in topics]
        await until(lambda: all(end.matched for end in topics.values()) and all(end.matched for end in readers))
        for data in (b"bad!", b"good", b"bad!"):
            topics["rt/one"].write(HEAD + data)
        topics["rt/two"].write(HEAD + b"else")
        await until(lambda: len(heard) == 2)
        topics["rt/one"].write(HEAD + b"more")
        await until(lambda: len(heard) == 3)
        assert set(heard) == {b"good", b"else", b"more"}
        participant.check()

    run(scenario)
    assert len([line for line in caplog.messages if line.startswith("skipped on rt/one: ")]) == 1


def test_a_participant_whose_thread_has_ended_says_so() -> None:
    async def scenario(participant: Participant) -> None:
        def deaf() -> bool:
            try:
                participant.check()
            except DdsError as error:
                return str(error) == "DDS is read no more: OSError('out of everything')"
            return False

        participant._waitset = _DamagedWaitSet()
        await until(deaf)

    run(scenario)


def test_a_participant_that_gets_no_thread_for_it_leaves_its_domain_all_the_same() -> None:
    async def scenario(participant: Participant) -> None:
        thread = participant._thread
        assert thread is not None
        with no_threads():
            await participant.close()
        assert participant._participant is None
        assert not thread.is_alive()

    run(scenario)


def test_ends_for_which_there_was_no_room_are_known_once_others_have_left(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = {"DCPSParticipant", "DCPSPublication", "DCPSSubscription"}  # of each participant of this process
    monkeypatch.setattr(module, "_MAX_ENDPOINTS", len(looks) + 1)
    monkeypatch.setattr(module, "_LOOK_AGAIN_S", 0.0)

    async def scenario(participant: Participant) -> None:
        def known() -> set[str]:
            return {end.topic for end in participant.endpoints()}

        first, second = Participant(103), Participant(103)
        try:
            await first.open()
            early = first.writer("rt/early", TYPE, DEFAULT)
            await until(lambda: known() == {*looks, "rt/early"})
            await second.open()
            late = second.writer("rt/late", TYPE, DEFAULT)
            await until(lambda: participant._look_again_at is not None)
            assert "rt/late" not in known()
            del early
            await first.close()
            await until(lambda: "rt/late" in known())
            del late
        finally:
            await first.close()
            await second.close()

    run(scenario)


def test_a_participant_that_is_back_is_mute_until_it_announces_something() -> None:
    returns = Returns()
    returns.come("robot", 0.0)
    assert returns.mute_s(60.0) == 0.0, "it has never been gone"
    returns.leave("robot")
    assert returns.mute_s(70.0) == 0.0
    returns.come("robot", 80.0)
    returns.leave("other")
    returns.come("other", 82.0)
    assert returns.mute_s(86.0) == 6.0
    returns.announce("robot", "rt/odom")
    assert returns.mute_s(86.0) == 4.0
    returns.leave("other")
    assert returns.mute_s(86.0) == 0.0


def test_a_participant_may_be_known_after_its_readers_and_writers() -> None:
    returns = Returns()
    returns.leave("robot")
    returns.announce("robot", "rt/odom")
    returns.come("robot", 1.0)
    assert returns.mute_s(60.0) == 0.0


def test_what_a_mute_participant_was_on_is_known() -> None:
    returns = Returns()
    for participant, topic in (("robot", "rt/odom"), ("robot", "rt/scan"), ("laptop", "rt/rosout")):
        returns.announce(participant, topic)
    for participant, at in (("robot", 10.0), ("laptop", 12.0), ("stranger", 12.0)):
        returns.leave(participant)
        returns.come(participant, at)
    assert returns.mute_topics(14.0) == set()
    assert returns.mute_topics(16.0) == {"rt/odom", "rt/scan"}
    returns.announce("robot", "rt/odom")
    assert returns.mute_topics(20.0) == {"rt/rosout"}


def test_participants_that_are_gone_do_not_pile_up() -> None:
    returns = Returns()
    for number in range(3000):
        returns.announce(str(number), "rt/odom")
        returns.leave(str(number))
    assert len(returns._gone) == len(returns._topics) == 1000
    returns.come("2999", 0.0)
    assert returns.mute_s(5.0) == 5.0


class _Announcements:
    """Hands out what Cyclone's reader of announcements would."""

    def __init__(self) -> None:
        self.samples: list[SimpleNamespace] = []

    def take(self, _: int) -> list[SimpleNamespace]:
        taken, self.samples = self.samples, []
        return taken


def test_a_robot_that_was_forgotten_and_takes_its_topics_for_known_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from cyclonedds.core import InstanceState, Qos

    now = 100.0
    monkeypatch.setattr(module, "clock", SimpleNamespace(monotonic=lambda: now))
    alive = SimpleNamespace(valid_data=True, instance_state=InstanceState.Alive)
    gone = SimpleNamespace(valid_data=False, instance_state=InstanceState.NotAliveNoWriters)
    participant, people, ends = Participant(103), _Announcements(), _Announcements()
    participant._participants, participant._discovery = people, ((ends, "out"),)
    monkeypatch.setattr(module, "_quality", lambda _: DEFAULT)
    writer = SimpleNamespace(
        key="odom", participant_key="robot", topic_name="rt/odom", type_name="", qos=Qos(), sample_info=alive
    )
    for state in (alive, gone, alive):
        people.samples.append(SimpleNamespace(key="robot", sample_info=state))
        participant._discover("own")
    now += 6.0
    assert participant.mute_s() == 6.0
    ends.samples.append(writer)
    participant._discover("own")
    assert participant.mute_s() == 0.0
    assert [end.topic for end in participant.endpoints()] == ["rt/odom"]


def test_settings_of_others_that_nothing_here_has_are_known() -> None:
    from cyclonedds.core import InstanceState, Policy, Qos
    from cyclonedds.util import duration

    never, second = duration(infinite=True), duration(seconds=1)
    usual = (Policy.Reliability.Reliable(0), Policy.Durability.Volatile)
    alive = SimpleNamespace(valid_data=True, instance_state=InstanceState.Alive)
    announced = {
        "nothing": ((), ()),
        "all as usual": ((Policy.Deadline(never), Policy.Liveliness.Automatic(never), Policy.Ownership.Shared), ()),
        "deadline": ((Policy.Deadline(second // 10),), ("a deadline of 0.1 s",)),
        "lease": ((Policy.Liveliness.Automatic(second),), ("liveliness within 1 s",)),
        "manual": ((Policy.Liveliness.ManualByTopic(never),), ("manual liveliness",)),
        "both": ((Policy.Liveliness.ManualByParticipant(second),), ("manual liveliness within 1 s",)),
        "partition": ((Policy.Partition(["left"]),), ("the partition 'left'",)),
        "ownership": ((Policy.Ownership.Exclusive,), ("exclusive ownership",)),
    }
    participant, readers, writers = Participant(103), _Announcements(), _Announcements()
    participant._participants, participant._discovery = _Announcements(), ((readers, "in"), (writers, "out"))
    for name, (policies, _) in announced.items():
        sample = SimpleNamespace(key=name, participant_key="robot", type_name="", sample_info=alive)
        sample.topic_name, sample.qos = name, Qos(*usual, *policies)
        readers.samples.append(sample)
        writers.samples.append(sample)
    participant._discover("own")
    asked = {end.topic: end.demands for end in participant.endpoints() if end.direction == "in"}
    assert asked == {name: demands for name, (_, demands) in announced.items()}
    # What a writer offers beyond what is asked for keeps it from nothing.
    kept_out = {end.topic for end in participant.endpoints() if end.direction == "out" and end.demands}
    assert kept_out == {"partition", "ownership"}
