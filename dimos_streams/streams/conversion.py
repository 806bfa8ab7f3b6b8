"""Conversions for inputs that take a second type of message, and what is said of a topic that has another type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Protocol, TypeVar

from dimos_streams.messages.base import Message
from dimos_streams.messages.odometry import OdometryFromPoses

T_co = TypeVar("T_co", covariant=True)


class Conversion(Protocol[T_co]):
    """Makes messages of an input's type from those of another one.

    Each input has an instance of its own, which may remember what came before. A class is made without arguments.
    """

    takes: ClassVar[type[Message]]
    """The other type."""

    def __call__(self, message: Any, /) -> T_co:
        """Return the message of the input's type. Must not raise."""


_STOCK = {"nav_msgs.Odometry": OdometryFromPoses}


def other_type(topic: str, found: Iterable[str], stream: str, taken: Iterable[type[Message]]) -> str:
    """A line that says that a topic has another type than the stream ``module.name`` takes, and what can be done."""
    wanted, there = list(taken), list(found)
    stock = _STOCK.get(wanted[0].msg_name)
    if stock is not None and stock.takes.msg_name in there:
        remedy = f"declare it as In(also={stock.__name__}), from {stock.__module__}"
    else:
        remedy = f"remap {stream} to a topic of its type, or convert it in a module of your own"
    takes = " or ".join(cls.msg_name for cls in wanted)
    return f"{topic} is there, as {' and '.join(there)}, but {stream} takes {takes}: {remedy}"
