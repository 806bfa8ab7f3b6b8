"""The differences of two messages or two events that are more than the tolerances allow."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dimos_streams.common.json.writing import json_text
from dimos_streams.common.process.internal_error import without_place
from dimos_streams.common.readable.shortening import beginning
from dimos_streams.errors import MessageError
from dimos_streams.messages.base import Message, content_of, fields_of
from dimos_streams.messages.codec import decode, split_channel, type_named
from dimos_streams.regression.named_fields import STAMPS
from dimos_streams.regression.tolerances import Tolerances

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_SHOWN, _SHOWN_ITEMS = 120, 8
_ABSENT = "nothing"


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One field of two messages. Its values are shown as ``shown_value`` shows them."""

    field: str
    recorded: str
    replayed: str
    amount: float | None = None
    """The difference of two numbers, or of two times in seconds; None for anything else."""

    def __str__(self) -> str:
        return f"{self.field}: recorded {self.recorded}, replayed {self.replayed}"


def message_differences(channel: str, recorded: bytes, replayed: bytes, allow: Tolerances) -> list[FieldDifference]:
    """The differences of two messages of a channel, field by field; unknown messages are compared as a whole."""
    if recorded == replayed:
        return []
    try:
        kind = type_named(split_channel(channel)[1], channel)
        first, second = decode(kind, recorded, channel), decode(kind, replayed, channel)
    except MessageError:
        return [_byte_difference(channel, recorded, replayed)]
    return list(_FieldComparison(channel, allow).messages("", first, second))


def _byte_difference(channel: str, recorded: bytes, replayed: bytes) -> FieldDifference:
    """The difference of two messages that can't be compared by fields; it says why if that is due to the recorded one
    alone, as after a change of the type's definition."""
    why = _why_undecodable(channel, recorded)
    shown = (
        f"{shown_value(recorded)} ({why})"
        if why and not _why_undecodable(channel, replayed)
        else shown_value(recorded)
    )
    return FieldDifference("bytes", shown, shown_value(replayed))


def _why_undecodable(channel: str, data: bytes) -> str:
    """Return why bytes are no message of a channel; empty if they are one."""
    try:
        decode(type_named(split_channel(channel)[1], channel), data, channel)
    except MessageError as error:
        return error.why
    return ""


def value_differences(
    channel: str, path: str, recorded: Any, replayed: Any, allow: Tolerances
) -> list[FieldDifference]:
    """The differences of two values as JSON has them."""
    return list(_FieldComparison(channel, allow).values(path, recorded, replayed))


def numbers_of(message: Message, prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield all single numbers of a message with their paths; arrays are left out."""
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if isinstance(value, Message):
            yield from numbers_of(value, f"{prefix}{field.name}.")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield f"{prefix}{field.name}", float(value)


@dataclass(frozen=True, slots=True)
class _FieldComparison:
    """The comparison of values on one channel, each at the path of its field. ``first`` is what was recorded."""

    channel: str
    allow: Tolerances

    def messages(self, prefix: str, first: Message, second: Message) -> Iterator[FieldDifference]:
        """Yield the differences of two messages of one type, field by field."""
        if first.msg_name in STAMPS:
            yield from self._times(prefix.removesuffix("."), _seconds(first), _seconds(second))
            return
        for field in fields_of(type(first)):
            path = prefix + field.name
            one, other = getattr(first, field.name), getattr(second, field.name)
            if path == "utime":
                yield from self._times(path, one / 1e6, other / 1e6)
            elif one != other:
                yield from self.values(path, one, other)

    def values(self, path: str, first: Any, second: Any) -> Iterator[FieldDifference]:
        """Yield the differences of two values of any types."""
        if isinstance(first, Message) and isinstance(second, Message):
            yield from self.messages(f"{path}.", first, second)
        elif _is_number(first) and _is_number(second):
            yield from self._numbers(path, first, second)
        elif isinstance(first, str) and isinstance(second, str):
            yield from self._texts(path, first, second)
        elif isinstance(first, Mapping) and isinstance(second, Mapping):
            yield from self._objects(path, first, second)
        elif isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
            yield from self._arrays(path, first, second)
        elif first != second or isinstance(first, bool) != isinstance(second, bool):
            yield FieldDifference(path, shown_value(first), shown_value(second))

    def _arrays(self, path: str, first: Sequence[Any], second: Sequence[Any]) -> Iterator[FieldDifference]:
        if len(first) != len(second):
            yield FieldDifference(path, f"{len(first)} entries", f"{len(second)} entries")
            return
        for index, pair in enumerate(zip(first, second, strict=True)):
            yield from self.values(f"{path}[{index}]", *pair)

    def _objects(self, path: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[FieldDifference]:
        """Yield the differences by key; one that a side lacks is a difference even if the other side has null for
        it."""
        for key in dict.fromkeys((*first, *second)):
            if key in first and key in second:
                yield from self.values(f"{path}.{key}", first[key], second[key])
            else:
                recorded, replayed = (shown_value(side[key]) if key in side else _ABSENT for side in (first, second))
                yield FieldDifference(f"{path}.{key}", recorded, replayed)

    def _numbers(self, path: str, first: float, second: float) -> Iterator[FieldDifference]:
        if first == second or (math.isnan(_as_float(first)) and math.isnan(_as_float(second))):
            return
        amount = _apart(first, second)
        if not amount <= self.allow.allowed(self.channel, path, _as_float(first)):
            yield FieldDifference(path, shown_value(first), shown_value(second), amount)

    def _texts(self, path: str, first: str, second: str) -> Iterator[FieldDifference]:
        """Yield a difference unless the texts differ in numbers only, and these are within the tolerance."""
        first, second = without_place(first), without_place(second)
        if first == second:
            return
        numbers = zip(_NUMBER.findall(first), _NUMBER.findall(second), strict=False)
        same_words = _NUMBER.split(first) == _NUMBER.split(second)
        if not (same_words and all(self._is_close(path, *pair) for pair in numbers)):
            yield FieldDifference(path, shown_value(first), shown_value(second))

    def _is_close(self, path: str, first: str, second: str) -> bool:
        """Return whether two numbers in texts are within the tolerance; without one they must be written alike."""
        allowed = self.allow.allowed(self.channel, path, float(first))
        return first == second or (allowed > 0.0 and abs(float(first) - float(second)) <= allowed)

    def _times(self, path: str, first_s: float, second_s: float) -> Iterator[FieldDifference]:
        amount = abs(first_s - second_s)
        # Floats of today hold a quarter of a microsecond.
        if amount > self.allow.time_s + 1e-6 * bool(self.allow.time_s):
            yield FieldDifference(path, f"{first_s:.6f}", f"{second_s:.6f}", amount)


def _apart(first: float, second: float) -> float:
    """The difference of two numbers; integers are subtracted as such, since floats do not hold them exactly."""
    try:
        return float(abs(first - second))
    except OverflowError:
        return math.inf


def _as_float(value: float) -> float:
    """A number as a float; an integer that is beyond all of them is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _seconds(stamp: Any) -> float:
    fraction = stamp.nsec if hasattr(stamp, "nsec") else stamp.nanosec
    return float(stamp.sec) + float(fraction) / 1e9


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def shown_value(value: Any, characters: int = _SHOWN) -> str:
    """Return a value as JSON, of which the beginning is enough for people: numbers to nine digits, of bytes and long
    arrays how many there are."""
    if isinstance(value, (bytes, bytearray)):
        return f"<{len(value)} bytes>"
    text = _digits(value) if isinstance(value, float) else json_text(_abridged(value))
    return beginning(text, characters, "...")


def _digits(value: float) -> str:
    return f"{value:.9g}"


def _abridged(value: Any) -> Any:
    if isinstance(value, Message):
        return {field.name: _abridged(getattr(value, field.name)) for field in content_of(type(value))}
    if isinstance(value, Mapping):
        return {str(key): _abridged(item) for key, item in value.items()}
    if isinstance(value, (bytes, bytearray)):
        return f"<{len(value)} bytes>"
    if isinstance(value, float):
        return float(_digits(value))
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return beginning(value, _SHOWN) if isinstance(value, str) else value
    items = list(value)
    few = items if len(items) <= _SHOWN_ITEMS else items[:3]
    return [_abridged(item) for item in few] + [f"... {len(items)} in all"] * (len(few) < len(items))
