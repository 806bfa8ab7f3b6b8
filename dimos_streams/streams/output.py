"""An output of a module."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

from dimos_streams.common.process.threads import check_thread
from dimos_streams.errors import DimosStreamsError
from dimos_streams.messages.base import LcmStruct, Message
from dimos_streams.messages.codec import channel_name, encode
from dimos_streams.messages.plain_classes import accepted
from dimos_streams.streams.options import options_alone
from dimos_streams.streams.spec import StreamSpec

if TYPE_CHECKING:
    from dimos_streams.bus import Bus

T = TypeVar("T", bound=LcmStruct)


class Out(Generic[T]):
    """An output of a module, declared as a class annotation: ``cmd_vel: Out[Twist]``."""

    @options_alone
    def __init__(self) -> None:
        self._spec: StreamSpec | None = None
        self._bus: Bus | None = None
        self._channel = ""
        self._silent = False
        self._muted = False
        self._thread = 0

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
        self._thread = threading.get_ident()

    def silence(self) -> None:
        """Take what is published and send it nowhere, because the blueprint leaves the output unwired; for hosts."""
        self._silent = True

    def mute(self) -> None:
        """Publish the type's zero value, so that a velocity becomes zero, and then nothing until ``unmute``; for
        hosts.

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
    def channel(self) -> str:
        """The channel on which it publishes; empty if there is none."""
        return "" if self._silent else self._channel

    @property
    def wanted(self) -> bool:
        """True if somebody may be listening. False is certain, so costly messages need not be made."""
        return self._bus is not None and self._bus.has_subscribers(self._channel)

    def publish(self, message: T) -> None:
        """Send a message. Never blocks.

        Raises ``DimosStreamsError`` before the module is started, after it has stopped and in another thread than its
        loop's, ``TypeError`` for another type of message, ``MessageError`` for fields that the type can't hold.
        """
        if self._silent:
            return
        name = self._spec.name if self._spec else "?"
        if self._bus is None:
            raise DimosStreamsError(f"output {name!r} is not connected: its module has not started or has stopped")
        check_thread(self._thread, f"output {name!r}", "loop.call_soon_threadsafe(output.publish, message)")
        assert self._spec is not None
        typed = accepted(message, self._spec.message)
        if typed is None:
            raise TypeError(f"output {name!r} takes {self._spec.message.msg_name}, not {type(message).__name__}")
        encoded = encode(typed)
        if not self._muted:
            self._bus.publish(self._channel, encoded)
