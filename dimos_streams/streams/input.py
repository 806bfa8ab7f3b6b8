"""An input of a module: the latest message, and counts."""

from __future__ import annotations

import contextlib
import inspect
import logging
import math
import typing
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from dimos_streams import clock
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.errors import MessageError, UserError
from dimos_streams.messages.base import LcmStruct, Message
from dimos_streams.messages.codec import channel_name, decode
from dimos_streams.messages.time import is_repeated
from dimos_streams.streams.conversion import Conversion
from dimos_streams.streams.options import options_alone
from dimos_streams.streams.reader import Reader
from dimos_streams.streams.spec import StreamSpec

if typing.TYPE_CHECKING:
    from dimos_streams.bus import Bus, Subscription
from dimos_streams.bus.sizes import largest_on

T = TypeVar("T", bound=LcmStruct)

_OWN_FRESH_S = 1.0
"""The time in s for which messages of the second type are left out after one of the input's own type, because two
sources would mix."""
_log = LimitedLog(logging.getLogger(__name__))


@dataclass(frozen=True, slots=True)
class InStatistics:
    """Counts of an input since it was connected."""

    received: int
    malformed: int
    """The number of payloads that were not a message of the input's type, or not a valid one; they are skipped."""
    dropped: int
    """The number of messages that a full queue pushed out before anybody took them. That is normal for
    latest-wins."""


class In(Generic[T]):
    """An input of a module, declared as a class annotation: ``scan: In[LaserScan]``.

    By default it is required, and the latest message wins. The value of the annotation states anything else:
    ``frames: In[Image] = In(queue=16)``.
    """

    @options_alone
    def __init__(
        self,
        *,
        required: bool = True,
        queue: int = 1,
        on_demand: bool = False,
        external: bool = False,
        also: type[Conversion[T]] | None = None,
        fault: Callable[[T], str] | None = None,
        fresh: bool = False,
    ) -> None:
        """Declare an input.

        Args:
            required: False if it may stay unwired.
            queue: The number of messages that are kept for a consumer; one more drops the oldest.
            on_demand: True if it receives only inside ``with self.NAME.listening()``, so that messages that are
                costly to make are not made for nothing.
            external: True if it is connected even where no module of the blueprint publishes: for messages from
                outside, such as ``Hold``, which operators send.
            also: A conversion from a second type of message on the same topic. Messages of that type are left out
                while some of the input's own type come.
            fault: A test that returns what is wrong with a message, in words, or an empty text. Faulty messages are
                skipped and counted; the latest message stays the last sound one.
            fresh: True if a message with the stamp of the one before, as of a frozen sensor, is skipped; 0 is no
                stamp.
        """
        if not isinstance(queue, int) or queue < 1:
            raise ValueError(f"In(queue={queue!r}): it must be a whole number of at least 1")
        self._required, self._queue, self._on_demand, self._external = required, queue, on_demand, external
        self._also, self._fault, self._fresh = also, fault, fresh
        self._convert: Conversion[T] | None = None
        self._own_at = -math.inf
        self._spec: StreamSpec | None = None
        self._source: tuple[Bus, str] | None = None
        self._other_channel = ""
        self._listeners = 0
        self._subscriptions: list[Subscription] = []
        self._latest: T | None = None
        self._arrival: float | None = None
        self._connected_at = math.inf
        self._skipped_at, self._skipped_for = -math.inf, ""
        self._received = self._malformed = self._dropped = 0
        self._readers: list[Reader[T]] = []
        self._own: Reader[T] | None = None
        self._callbacks: list[Callable[[T], None]] = []

    def declare(self, name: str, message: type[Message]) -> StreamSpec:
        """The specification of this declaration under an attribute's name."""
        spec = StreamSpec(name, "in", message, self._required, self._queue, self._on_demand, self._external)
        return replace(
            spec,
            also=typing.cast("type[Conversion[Message]] | None", self._also),
            fault=typing.cast("Callable[[Message], str] | None", self._fault),
            fresh=self._fresh,
        )

    @classmethod
    def from_spec(cls, spec: StreamSpec) -> In[T]:
        """A fresh input of one module instance."""
        stream = cls(required=spec.required, queue=spec.queue, on_demand=spec.on_demand, external=spec.external)
        stream._also = typing.cast("type[Conversion[T]] | None", spec.also)
        stream._fault = typing.cast("Callable[[T], str] | None", spec.fault)
        stream._fresh = spec.fresh
        stream._spec = spec
        return stream

    def connect(self, bus: Bus, topic: str) -> None:
        """Begin to receive from ``topic``; for hosts of modules."""
        assert self._spec is not None
        self._source, self._connected_at = (bus, channel_name(topic, self._spec.message)), clock.monotonic()
        if self._also is not None:
            self._other_channel, self._convert = channel_name(topic, self._also.takes), self._also()
        if not self._on_demand:
            self._subscribe()

    def disconnect(self) -> None:
        """Receive no more. Twice is fine."""
        self._source = None
        self._unsubscribe()

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Receive inside the block; ``latest`` and ``next`` begin anew in each. For inputs on demand.

        Blocks of several calls may overlap. An input that is not on demand, or not wired, is left as it is.
        """
        self._listeners += 1
        try:
            if self._on_demand and self._listeners == 1:
                self._subscribe()
            yield
        finally:
            self._listeners -= 1
            if self._on_demand and self._listeners == 0:
                self._unsubscribe()
                self._latest, self._arrival = None, None
                if self._own is not None:
                    self.release(self._own)
                    self._own = None

    @property
    def wired(self) -> bool:
        """True if the input is connected to a topic."""
        return self._source is not None

    @property
    def channel(self) -> str:
        """The channel of its own type that it is connected to; empty if there is none."""
        return self._source[1] if self._source is not None else ""

    @property
    def latest(self) -> T | None:
        """The newest message, or None before the first."""
        return self._latest

    def age(self) -> float | None:
        """Return the seconds since the newest message arrived, or None before the first."""
        return None if self._arrival is None else clock.monotonic() - self._arrival

    def silent_s(self) -> float:
        """Return the seconds since the newest message arrived; before the first, since the input was connected."""
        return clock.monotonic() - (self._connected_at if self._arrival is None else self._arrival)

    def skipped(self, within_s: float) -> str:
        """Return why what came last, ``within_s`` ago at most, was skipped; empty if it was taken, or none came."""
        return self._skipped_for if clock.monotonic() - self._skipped_at <= within_s else ""

    async def next(self) -> T:
        """Return the next message that ``next`` has not returned; wait for one if there is none. For one consumer."""
        if self._own is None:
            self._own = self.reader()
            if self._latest is not None:
                self._own.push(self._latest)
        return await self._own.next()

    def reader(self, queue: int | None = None) -> Reader[T]:
        """Return a new queue that is filled from now on; each of several consumers needs one. End it with
        ``release``."""
        reader: Reader[T] = Reader(queue or self._queue)
        self._readers.append(reader)
        return reader

    def release(self, reader: Reader[T]) -> None:
        """Stop filling a reader. Twice is fine."""
        if reader in self._readers:
            self._readers.remove(reader)
            self._dropped += reader.dropped

    async def __aiter__(self) -> AsyncIterator[T]:
        """Yield all messages from now on, as far as the queue holds them."""
        reader = self.reader()
        try:
            while True:
                yield await reader.next()
        finally:
            self.release(reader)

    def on_message(self, callback: Callable[[T], None]) -> None:
        """Call a plain function with each message as it arrives, on the loop. What it raises is logged.

        Raises ``UserError`` for an ``async def``, which would never run."""
        if inspect.iscoroutinefunction(callback):
            named = getattr(callback, "__qualname__", repr(callback))
            raise UserError(f"on_message({named}) is asynchronous; nobody waits for it: make it a plain `def`")
        self._callbacks.append(callback)

    def statistics(self) -> InStatistics:
        """Return counts of what has come in."""
        dropped = self._dropped + sum(reader.dropped for reader in self._readers)
        return InStatistics(self._received, self._malformed, dropped)

    def _subscribe(self) -> None:
        if self._source is not None:
            bus, channel = self._source
            self._subscriptions.append(bus.subscribe(channel, self._receive_own, largest=largest_on(channel)))
            if self._other_channel:
                self._subscriptions.append(
                    bus.subscribe(self._other_channel, self._receive_other, largest=largest_on(self._other_channel))
                )

    def _unsubscribe(self) -> None:
        for subscription in self._subscriptions:
            subscription.close()
        self._subscriptions.clear()

    def _receive_own(self, channel: str, data: bytes) -> None:
        assert self._spec is not None
        message = typing.cast("T | None", self._decoded(self._spec.message, data, channel))
        if message is not None and self._is_valid(message, channel) and self._is_new(message):
            self._own_at = clock.monotonic()
            self._take(message)

    def _receive_other(self, channel: str, data: bytes) -> None:
        assert self._also is not None
        assert self._convert is not None
        message = self._decoded(self._also.takes, data, channel)
        if message is None or clock.monotonic() - self._own_at <= _OWN_FRESH_S:
            return
        converted = self._convert(message)
        if self._is_valid(converted, channel) and self._is_new(converted):
            self._take(converted)

    def _decoded(self, message: type[Message], data: bytes, channel: str) -> Message | None:
        """Return the decoded message, or None, counted and logged, if the bytes are no such message."""
        try:
            return decode(message, data, channel=channel)
        except MessageError as error:
            self._skip(error.why)
            _log.warning("skipped: %s", error)
            return None

    def _is_valid(self, message: T, channel: str) -> bool:
        """Return whether a message is valid; one that is not is counted and logged."""
        fault = self._fault(message) if self._fault is not None else ""
        if fault:
            self._skip(fault)
            _log.warning("skipped a message on %s: %s", channel, fault)
        return not fault

    def _is_new(self, message: T) -> bool:
        """Return False for what has the stamp of the one before. It is not logged: a sound sender may repeat one."""
        repeated = self._fresh and self._latest is not None and is_repeated(message, self._latest)
        if repeated:
            self._skipped_at, self._skipped_for = clock.monotonic(), "it repeats one stamp, as a frozen sensor does"
        return not repeated

    def _skip(self, why: str) -> None:
        self._malformed += 1
        self._skipped_at, self._skipped_for = clock.monotonic(), why

    def _take(self, message: T) -> None:
        self._received += 1
        self._skipped_for = ""
        self._latest = message
        self._arrival = clock.monotonic()
        for reader in self._readers:
            reader.push(message)
        failed: BaseException | None = None
        for callback in self._callbacks:
            try:
                callback(message)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # that of a cancelled future, too
                if failed is not None:
                    _log.exception("%s fails at a message on %s: %s", callback, self.channel, error)
                failed = failed or error
        if failed is not None:  # when all have had the message: whoever handed it over counts and logs it
            raise failed
