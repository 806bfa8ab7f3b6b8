"""One participant of DDS, on its own: what comes in can't make it deaf."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.errors import MessageError
from dimos_streams.messages.std_msgs import UInt32
from dimos_streams.ros2 import participant as module
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
    own = len(("DCPSPublication", "DCPSSubscription"))  # by which each participant of this process looks for others
    monkeypatch.setattr(module, "_MAX_ENDPOINTS", own + 1)
    monkeypatch.setattr(module, "_LOOK_AGAIN_S", 0.0)

    async def scenario(participant: Participant) -> None:
        def known() -> set[str]:
            return {end.topic for end in participant.endpoints()}

        first, second = Participant(103), Participant(103)
        try:
            await first.open()
            early = first.writer("rt/early", TYPE, DEFAULT)
            await until(lambda: "rt/early" in known() and len(known()) == own + 1)
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
