"""One participant of a DDS domain, on Cyclone DDS.

Cyclone's Python binding makes Python objects of what it reads, which is slow for pictures; here topics carry bytes,
and only their descriptions are Cyclone's.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dimos_streams import clock
from dimos_streams.common.importing import how_to_get
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.process.loopback import interfaces
from dimos_streams.common.process.threads import begin_thread, in_executor, see_out
from dimos_streams.errors import MessageError, UserError
from dimos_streams.ros2.deafness import Returns
from dimos_streams.ros2.domain import LOOPBACK, configuration, enter
from dimos_streams.ros2.idl_types import bytes_class
from dimos_streams.ros2.layout import RosStruct
from dimos_streams.ros2.wire import DdsError, Direction, Endpoint, Quality, TopicReader, TopicWriter

if TYPE_CHECKING:
    from cyclonedds.pub import DataWriter
    from cyclonedds.sub import DataReader

_NS_PER_S = 1_000_000_000
_WAIT_S = 0.2
"""The interval at which the thread looks whether it shall end, and who has come and gone."""
_MAX_ENDPOINTS = 5000
_LOOK_AGAIN_S = 10.0
"""The time after which endpoints for which there was no room are looked for again, once others have left."""

_log = LimitedLog(logging.getLogger(__name__))


class Participant:
    """A ``Wire`` on Cyclone DDS."""

    def __init__(self, domain_id: int, interface: str = LOOPBACK, peers: tuple[str, ...] = ()) -> None:
        """``interface`` is the only one that is used; ``peers`` are addresses to look for others at, without
        multicast.

        On the loopback interface nothing leaves the machine. What is sent to this machine from elsewhere may come in:
        Cyclone binds what it hears with to all interfaces, whatever its configuration says.
        """
        self._domain_id, self._config = domain_id, configuration(interface, peers)
        self._interface = interface
        self._readers: list[_DdsReader] = []
        self._endpoints: dict[tuple[str, str], Endpoint] = {}
        self._look_again_at: float | None = None
        """The time from which on endpoints that were left out are looked for again; None if none was."""
        self._ending = threading.Event()
        self._fault: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._participant: Any = None
        self._waitset: Any = None
        self._discovery: tuple[tuple[Any, Direction], ...] = ()
        self._participants: Any = None
        self._returns = Returns()

    async def open(self) -> None:
        """See ``Wire``."""
        if clock.is_virtual():
            raise UserError("a robot that runs ROS 2 keeps its own time: leave out --virtual-time")
        self._loop = asyncio.get_running_loop()
        await in_executor(None, self._open)
        thread = threading.Thread(target=self._run, name="dds", daemon=True)
        begin_thread(thread)
        self._thread = thread

    async def close(self) -> None:
        """See ``Wire``."""
        self._ending.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            await see_out(thread.join)
        for reader in self._readers:
            reader.close()
        self._readers.clear()
        participant, self._participant = self._participant, None
        self._discovery, self._participants, self._waitset = (), None, None
        if participant is not None:
            # It would live on for as long as anybody holds one of its writers. All that it has goes with it.
            await see_out(participant.__del__)

    def check(self) -> None:
        """See ``Wire``."""
        if self._fault is not None:
            raise DdsError(f"DDS is read no more: {self._fault!r}") from self._fault

    def writer(self, topic: str, struct: RosStruct, quality: Quality) -> TopicWriter:
        """See ``Wire``."""
        from cyclonedds.pub import DataWriter

        return _DdsWriter(DataWriter(self._participant, self._topic(topic, struct), _qos(quality)), topic)

    def reader(
        self,
        topic: str,
        struct: RosStruct,
        quality: Quality,
        decode: Callable[[bytes], Any],
        deliver: Callable[[Any], None],
    ) -> TopicReader:
        """See ``Wire``."""
        from cyclonedds.core import InstanceState, ReadCondition, SampleState, ViewState
        from cyclonedds.sub import DataReader

        source = DataReader(self._participant, self._topic(topic, struct), _qos(quality))
        reader = _DdsReader(source, topic, quality.depth, decode, deliver, self._loop)
        reader.condition = ReadCondition(source, SampleState.NotRead | ViewState.Any | InstanceState.Any)
        self._waitset.attach(reader.condition)
        self._readers.append(reader)
        return reader

    def endpoints(self) -> list[Endpoint]:
        """See ``Wire``."""
        return list(self._endpoints.values())

    def mute_s(self) -> float:
        """See ``Wire``."""
        return self._returns.mute_s(clock.monotonic())

    def mute_topics(self) -> set[str]:
        """See ``Wire``."""
        return self._returns.mute_topics(clock.monotonic())

    def _open(self) -> None:
        try:
            from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsParticipant
            from cyclonedds.core import DDSException, WaitSet
            from cyclonedds.domain import DomainParticipant
        except ImportError as error:
            raise UserError(how_to_get("cyclonedds")) from error
        try:
            enter(self._domain_id, self._config)
            self._participant = DomainParticipant(self._domain_id)
        except DDSException as error:
            there = ", ".join(interfaces().values())
            where = f"domain {self._domain_id} on the interface {self._interface!r} (there are: {there})"
            raise UserError(f"DDS can't take part in {where}: {_text(error)}") from error
        self._waitset = WaitSet(self._participant)
        self._participants = BuiltinDataReader(self._participant, BuiltinTopicDcpsParticipant)
        self._look_anew()

    def _look_anew(self) -> None:
        """Have all that is announced at present taken next, of which a new reader is told."""
        from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication, BuiltinTopicDcpsSubscription

        self._discovery = (
            (BuiltinDataReader(self._participant, BuiltinTopicDcpsPublication), "out"),
            (BuiltinDataReader(self._participant, BuiltinTopicDcpsSubscription), "in"),
        )
        self._look_again_at = None

    def _topic(self, name: str, struct: RosStruct) -> Any:
        from cyclonedds.topic import Topic

        return Topic(self._participant, name, bytes_class(struct))

    def _run(self) -> None:
        try:
            self._read_all()
        except BaseException as error:  # whatever it is, ``check`` raises it on the loop
            self._fault = error

    def _read_all(self) -> None:
        own = self._participant.guid
        while not self._ending.is_set():
            try:
                self._discover(own)
            except Exception:  # others may announce anything, and all is heard without knowing of them
                _log.exception("what was announced in DDS can't be read")
            self._waitset.wait(int(_WAIT_S * _NS_PER_S))
            for reader in list(self._readers):
                reader.take()

    def _discover(self, own: Any) -> None:
        now, known = clock.monotonic(), self._endpoints
        if self._look_again_at is not None and now >= self._look_again_at and len(known) < _MAX_ENDPOINTS:
            known = {}
            self._look_anew()
        for sample in self._participants.take(_MAX_ENDPOINTS):
            if _is_there(sample):
                self._returns.come(str(sample.key), now)
            else:
                self._returns.leave(str(sample.key))
        for discovery, direction in self._discovery:
            for sample in discovery.take(_MAX_ENDPOINTS):
                if not _is_there(sample):
                    known.pop((direction, str(sample.key)), None)
                    continue
                if sample.participant_key == own:
                    continue
                self._returns.announce(str(sample.participant_key), sample.topic_name)
                if len(known) >= _MAX_ENDPOINTS:
                    self._look_again_at = self._look_again_at or now + _LOOK_AGAIN_S
                    continue
                quality, demands = _quality(sample.qos), _demands(sample.qos, direction)
                end = Endpoint(sample.topic_name, sample.type_name, direction, quality, demands)
                known[direction, str(sample.key)] = end
        self._endpoints = known


class _DdsWriter:
    """A ``TopicWriter`` of Cyclone DDS."""

    def __init__(self, target: DataWriter[Any], topic: str) -> None:
        self._target, self._topic = target, topic

    def write(self, data: bytes) -> None:
        """See ``TopicWriter``."""
        from cyclonedds.core import DDSException

        sample = self._target.data_type()
        sample.data = data
        try:
            self._target.write(sample)
        except DDSException as error:
            raise DdsError(f"{self._topic!r} can't be written: {_text(error)}") from error

    @property
    def matched(self) -> int:
        """See ``TopicWriter``."""
        return len(self._target.get_matched_subscriptions())


class _DdsReader:
    """A ``TopicReader`` of Cyclone DDS. ``take`` is called in the thread, ``_deliver_all`` on the loop."""

    condition: Any

    def __init__(
        self,
        source: DataReader[Any],
        topic: str,
        depth: int,
        decode: Callable[[bytes], Any],
        deliver: Callable[[Any], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._source, self.topic, self._depth = source, topic, depth
        self._decode, self._deliver, self._loop = decode, deliver, loop
        self._arrived: deque[Any] = deque(maxlen=depth)
        self._announced = self._closed = False
        self._skipped = ""

    @property
    def matched(self) -> int:
        """See ``TopicReader``."""
        return len(self._source.get_matched_publications())

    @property
    def writers(self) -> frozenset[str]:
        """See ``TopicReader``."""
        handles = self._source.get_matched_publications()
        found = map(self._source.get_matched_publication_data, handles)
        return frozenset(str(writer.key) for writer in found if writer is not None)  # one that has just gone is None

    @property
    def skipped(self) -> str:
        """See ``TopicReader``."""
        return self._skipped

    def close(self) -> None:
        """Deliver no more."""
        self._closed = True

    def take(self) -> None:
        """Take and decode what has come, and have it delivered."""
        for sample in self._source.take(self._depth):
            data = getattr(sample, "data", None)
            if data is None:
                continue  # a writer went away
            try:
                self._arrived.append(self._decode(data))
                self._skipped = ""
            except MessageError as error:
                self._skipped = str(error)
                _log.warning("skipped on %s: %s", self.topic, error)
            except Exception as error:  # it costs this message, and leaves the others as they are
                self._skipped = repr(error)
                _log.exception("skipped on %s: it can't be read", self.topic)
        if self._arrived and not self._announced:
            self._announced = True
            try:
                self._loop.call_soon_threadsafe(self._deliver_all)
            except RuntimeError:  # the loop has been closed
                return

    def _deliver_all(self) -> None:
        self._announced = False
        while self._arrived and not self._closed:
            self._deliver(self._arrived.popleft())


def _qos(quality: Quality) -> Any:
    from cyclonedds.core import Policy, Qos

    return Qos(
        Policy.Reliability.Reliable(0) if quality.reliable else Policy.Reliability.BestEffort,
        Policy.Durability.TransientLocal if quality.latched else Policy.Durability.Volatile,
        Policy.History.KeepLast(quality.depth),
        Policy.DataRepresentation(use_cdrv0_representation=True),
    )


def _is_there(sample: Any) -> bool:
    """Return whether a sample tells of somebody who is there, not of one who is gone."""
    from cyclonedds.core import InstanceState

    info = sample.sample_info
    return bool(info.valid_data and info.instance_state == InstanceState.Alive)


def _quality(qos: Any) -> Quality:
    from cyclonedds.core import Policy

    latched = (Policy.Durability.TransientLocal, Policy.Durability.Transient, Policy.Durability.Persistent)
    return Quality(
        reliable=isinstance(qos[Policy.Reliability], Policy.Reliability.Reliable),
        latched=qos[Policy.Durability] in latched,
    )


def _demands(qos: Any, direction: Direction) -> tuple[str, ...]:
    """Return the settings that keep a reader or writer from being connected with one that has none of them."""
    from cyclonedds.core import Policy
    from cyclonedds.util import duration

    policies = {policy.__scope__: policy for policy in qos}
    found: dict[str, bool] = {}
    if (partition := policies.get("Partition")) is not None and any(partition.partitions):
        found[f"the partition {', '.join(map(repr, partition.partitions))}"] = True
    found["exclusive ownership"] = policies.get("Ownership") == Policy.Ownership.Exclusive
    if direction == "in":  # a writer may offer more than is asked for
        never = duration(infinite=True)
        if (deadline := policies.get("Deadline")) is not None:
            found[f"a deadline of {deadline.deadline / _NS_PER_S:g} s"] = deadline.deadline < never
        if (liveliness := policies.get("Liveliness")) is not None:
            lease = liveliness.lease_duration
            is_manual = not isinstance(liveliness, Policy.Liveliness.Automatic)
            found["manual liveliness"] = is_manual and lease >= never
            found[f"{'manual ' * is_manual}liveliness within {lease / _NS_PER_S:g} s"] = lease < never
    return tuple(setting for setting, is_set in found.items() if is_set)


def _text(error: Exception) -> str:
    return " ".join(str(error).split())
