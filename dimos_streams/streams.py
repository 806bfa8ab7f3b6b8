"""Typed inputs and outputs of a module."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import typing
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from dimos_streams import clock
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.errors import DimosStreamsError, MessageError
from dimos_streams.messages import registry
from dimos_streams.messages.base import LcmStruct, Message
from dimos_streams.messages.codec import channel_name, decode, encode
from dimos_streams.messages.plain_classes import accepted, is_message_class, message_class

if typing.TYPE_CHECKING:
    from dimos_streams.bus import Bus, Subscription

T = TypeVar("T", bound=LcmStruct)

_log = LimitedLog(logging.getLogger(__name__))


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """One stream as a module class declares it."""

    name: str
    direction: Literal["in", "out"]
    message: type[Message]
    required: bool = False
    queue: int = 1
    on_demand: bool = False
    external: bool = False
    """Its messages may come from outside of the blueprint: it is connected in any case."""


@dataclass(frozen=True, slots=True)
class InStatistics:
    """Counts since the input was connected."""

    received: int
    malformed: int
    """Payloads that were not a message of the input's type; skipped."""
    dropped: int
    """Messages that a full queue pushed out before anybody took them. Normal for latest-wins."""


class Reader(Generic[T]):
    """One consumer's own bounded queue on an input. Full, it drops the oldest."""

    def __init__(self, capacity: int) -> None:
        self._queue: deque[T] = deque(maxlen=capacity)
        self._arrived = asyncio.Event()
        self.dropped = 0

    def push(self, message: T) -> None:
        """Queue one message; for ``In``."""
        if len(self._queue) == self._queue.maxlen:
            self.dropped += 1
        self._queue.append(message)
        self._arrived.set()

    async def next(self) -> T:
        """The oldest message not taken yet; waits for one."""
        while not self._queue:
            self._arrived.clear()
            await self._arrived.wait()
        return self._queue.popleft()


class In(Generic[T]):
    """An input of a module, declared as a class annotation: ``scan: In[LaserScan]``.

    By default it is required and the latest message wins. ``scan: In[LaserScan] = In(required=False)`` may stay
    unwired; ``frames: In[Image] = In(queue=16)`` keeps up to 16 messages for a consumer, then drops the oldest.
    ``picture: In[Image] = In(on_demand=True)`` receives only inside ``with self.picture.listening()``, so that what
    is costly to make is not made for nothing. ``hold: In[Hold] = In(required=False, external=True)`` is connected
    though no module publishes there: operators do.
    """

    def __init__(
        self, *, required: bool = True, queue: int = 1, on_demand: bool = False, external: bool = False
    ) -> None:
        if queue < 1:
            raise ValueError(f"queue must be at least 1, not {queue!r}")
        self._required, self._queue, self._on_demand, self._external = required, queue, on_demand, external
        self._spec: StreamSpec | None = None
        self._source: tuple[Bus, str] | None = None
        self._listeners = 0
        self._subscription: Subscription | None = None
        self._latest: T | None = None
        self._arrival: float | None = None
        self._received = self._malformed = self._dropped = 0
        self._readers: list[Reader[T]] = []
        self._own: Reader[T] | None = None
        self._callbacks: list[Callable[[T], None]] = []

    def declare(self, name: str, message: type[Message]) -> StreamSpec:
        """The specification of this declaration under an attribute's name."""
        return StreamSpec(name, "in", message, self._required, self._queue, self._on_demand, self._external)

    @classmethod
    def from_spec(cls, spec: StreamSpec) -> In[T]:
        """A fresh input of one module instance."""
        stream = cls(required=spec.required, queue=spec.queue, on_demand=spec.on_demand, external=spec.external)
        stream._spec = spec
        return stream

    def connect(self, bus: Bus, topic: str) -> None:
        """Begin to receive from ``topic``; for hosts of modules."""
        assert self._spec is not None
        self._source = bus, channel_name(topic, self._spec.message)
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
        if self._on_demand and self._listeners == 1:
            self._subscribe()
        try:
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
        """Whether the input is connected to a topic."""
        return self._source is not None

    @property
    def channel(self) -> str:
        """The channel that it is connected to, empty if there is none."""
        return self._source[1] if self._source is not None else ""

    @property
    def latest(self) -> T | None:
        """The newest message, None before the first."""
        return self._latest

    def age(self) -> float | None:
        """Seconds since the newest message arrived, None before the first."""
        return None if self._arrival is None else clock.monotonic() - self._arrival

    async def next(self) -> T:
        """The next message that ``next`` has not returned; waits for one. For one consumer."""
        if self._own is None:
            self._own = self.reader()
            if self._latest is not None:
                self._own.push(self._latest)
        return await self._own.next()

    def reader(self, queue: int | None = None) -> Reader[T]:
        """A queue of one's own, from now on; each of several consumers needs one. End it with ``release``."""
        reader: Reader[T] = Reader(queue or self._queue)
        self._readers.append(reader)
        return reader

    def release(self, reader: Reader[T]) -> None:
        """Stop filling a reader. Twice is fine."""
        if reader in self._readers:
            self._readers.remove(reader)
            self._dropped += reader.dropped

    async def __aiter__(self) -> AsyncIterator[T]:
        """All messages from now on, as far as the queue holds them."""
        reader = self.reader()
        try:
            while True:
                yield await reader.next()
        finally:
            self.release(reader)

    def on_message(self, callback: Callable[[T], None]) -> None:
        """Call a plain function with each message as it arrives, on the loop."""
        self._callbacks.append(callback)

    def statistics(self) -> InStatistics:
        """Counts of what has come in."""
        dropped = self._dropped + sum(reader.dropped for reader in self._readers)
        return InStatistics(self._received, self._malformed, dropped)

    def _subscribe(self) -> None:
        if self._source is not None:
            bus, channel = self._source
            self._subscription = bus.subscribe(channel, self._receive)

    def _unsubscribe(self) -> None:
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    def _receive(self, channel: str, data: bytes) -> None:
        assert self._spec is not None
        try:
            message = typing.cast("T", decode(self._spec.message, data, channel=channel))
        except MessageError as error:
            self._malformed += 1
            _log.warning("skipped: %s", error)
            return
        self._received += 1
        self._latest = message
        self._arrival = clock.monotonic()
        for reader in self._readers:
            reader.push(message)
        for callback in self._callbacks:
            callback(message)


class Out(Generic[T]):
    """An output of a module, declared as a class annotation: ``cmd_vel: Out[Twist]``."""

    def __init__(self) -> None:
        self._spec: StreamSpec | None = None
        self._bus: Bus | None = None
        self._channel = ""
        self._silent = False
        self._muted = False

    def declare(self, name: str, message: type[Message]) -> StreamSpec:
        """The specification of this declaration under an attribute's name."""
        return StreamSpec(name, "out", message)

    @classmethod
    def from_spec(cls, spec: StreamSpec) -> Out[T]:
        """A fresh output of one module instance."""
        stream = cls()
        stream._spec = spec
        return stream

    def connect(self, bus: Bus, topic: str) -> None:
        """Begin to publish on ``topic``; for hosts of modules."""
        assert self._spec is not None
        self._bus, self._channel = bus, channel_name(topic, self._spec.message)

    def silence(self) -> None:
        """Take what is published and send it nowhere, because the blueprint leaves the output unwired; for hosts."""
        self._silent = True

    def mute(self) -> None:
        """Publish the type's zero value, for a velocity to stand, and then nothing until ``unmute``; for hosts.

        What is published meanwhile goes nowhere. Twice is fine.
        """
        if not self._muted and self._bus is not None and not self._silent:
            assert self._spec is not None
            self._bus.publish(self._channel, encode(self._spec.message()))
        self._muted = True

    def unmute(self) -> None:
        """Publish again. Twice is fine."""
        self._muted = False

    def disconnect(self) -> None:
        """Publish no more. Twice is fine."""
        self._bus = None

    @property
    def wanted(self) -> bool:
        """Whether somebody may be listening. False is certain, so costly messages need not be made."""
        return self._bus is not None and self._bus.has_subscribers(self._channel)

    def publish(self, message: T) -> None:
        """Send a message. Never blocks.

        Raises ``DimosStreamsError`` before the module is started or after it has stopped, ``TypeError`` for another
        type of message, ``MessageError`` for fields that the type can't hold.
        """
        if self._silent:
            return
        name = self._spec.name if self._spec else "?"
        if self._bus is None:
            raise DimosStreamsError(f"output {name!r} is not connected: its module has not started or has stopped")
        assert self._spec is not None
        typed = accepted(message, self._spec.message)
        if typed is None:
            raise TypeError(f"output {name!r} takes {self._spec.message.msg_name}, not {type(message).__name__}")
        encoded = encode(typed)
        if not self._muted:
            self._bus.publish(self._channel, encoded)


@functools.cache
def declared_streams(owner: type) -> Mapping[str, StreamSpec]:
    """The streams that a class and its bases declare, in the order of their declaration.

    Raises ``TypeError`` for a stream without a message type, or an annotation that can't be resolved.
    """
    try:
        hints = typing.get_type_hints(owner)
    except NameError as error:
        raise TypeError(f"{owner.__name__}: an annotation can't be resolved: {error}") from error
    specs: dict[str, StreamSpec] = {}
    for name, hint in hints.items():
        origin = typing.get_origin(hint) or hint
        if origin not in (In, Out):
            continue
        arguments = typing.get_args(hint)
        message = _message_of(arguments, f"{owner.__name__}.{name}")
        declaration = getattr(owner, name, None)
        if declaration is None:
            declaration = origin()
        if not isinstance(declaration, origin):
            raise TypeError(f"{owner.__name__}.{name} is annotated {hint} but set to {declaration!r}")
        registry.use(message)
        specs[name] = declaration.declare(name, message)
    return specs


def _message_of(arguments: tuple[object, ...], where: str) -> type[Message]:
    if len(arguments) != 1 or not is_message_class(arguments[0]):
        given = ", ".join(getattr(one, "__name__", repr(one)) for one in arguments) or "nothing"
        raise TypeError(
            f"{where} must name an LCM message type, as in In[Twist], not {given}: a class of "
            "dimos_streams.messages, or one that 'dimos-streams messages generate' or lcm-gen has made"
        )
    try:
        return message_class(arguments[0])
    except (TypeError, ImportError, AttributeError) as error:
        raise TypeError(f"{where}: {error}") from error
