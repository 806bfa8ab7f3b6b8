"""The differences of two messages or two events that are more than the tolerances allow."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dimos_streams.common.process.internal_error import without_place
from dimos_streams.common.readable.shortening import beginning
from dimos_streams.errors import MessageError
from dimos_streams.messages.base import Message, fields_of
from dimos_streams.messages.codec import decode, split_channel, type_named
from dimos_streams.regression.named_fields import STAMPS
from dimos_streams.regression.tolerances import Tolerances

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_SHOWN = 120
_ABSENT = "nothing"


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One field of two messages. Texts are shortened."""

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
        return [_of_bytes(channel, recorded, replayed)]
    return list(_of_messages(channel, "", first, second, allow))


def _of_bytes(channel: str, recorded: bytes, replayed: bytes) -> FieldDifference:
    """The difference of two messages that can't be compared by fields; it says why if that is due to the recorded one
    alone, as after a change of the type's definition."""
    why = _fault(channel, recorded)
    shown = f"{_render(recorded)} ({why})" if why and not _fault(channel, replayed) else _render(recorded)
    return FieldDifference("bytes", shown, _render(replayed))


def _fault(channel: str, data: bytes) -> str:
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
    return list(_of_values(channel, path, recorded, replayed, allow))


def numbers_of(message: Message, prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield all single numbers of a message with their paths; arrays are left out."""
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if isinstance(value, Message):
            yield from numbers_of(value, f"{prefix}{field.name}.")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield f"{prefix}{field.name}", float(value)


def _of_messages(
    channel: str, prefix: str, recorded: Message, replayed: Message, allow: Tolerances
) -> Iterator[FieldDifference]:
    if recorded.msg_name in STAMPS:
        yield from _of_stamps(prefix.removesuffix("."), recorded, replayed, allow)
        return
    for field in fields_of(type(recorded)):
        path = prefix + field.name
        first, second = getattr(recorded, field.name), getattr(replayed, field.name)
        if path == "utime":
            yield from _of_times(path, first / 1e6, second / 1e6, allow)
        elif first != second:
            yield from _of_values(channel, path, first, second, allow)


def _of_values(channel: str, path: str, first: Any, second: Any, allow: Tolerances) -> Iterator[FieldDifference]:
    if isinstance(first, Message) and isinstance(second, Message):
        yield from _of_messages(channel, f"{path}.", first, second, allow)
    elif _is_number(first) and _is_number(second):
        yield from _of_numbers(channel, path, first, second, allow)
    elif isinstance(first, str) and isinstance(second, str):
        yield from _of_texts(channel, path, first, second, allow)
    elif isinstance(first, Mapping) and isinstance(second, Mapping):
        yield from _of_objects(channel, path, first, second, allow)
    elif isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        if len(first) != len(second):
            yield FieldDifference(path, f"{len(first)} entries", f"{len(second)} entries")
            return
        for index, pair in enumerate(zip(first, second, strict=True)):
            yield from _of_values(channel, f"{path}[{index}]", *pair, allow)
    elif first != second or isinstance(first, bool) != isinstance(second, bool):
        yield FieldDifference(path, _render(first), _render(second))


def _of_objects(
    channel: str, path: str, first: Mapping[str, Any], second: Mapping[str, Any], allow: Tolerances
) -> Iterator[FieldDifference]:
    """Yield the differences by key; one that a side lacks is a difference even if the other side has null for it."""
    for key in dict.fromkeys((*first, *second)):
        if key in first and key in second:
            yield from _of_values(channel, f"{path}.{key}", first[key], second[key], allow)
        else:
            recorded, replayed = (_render(side[key]) if key in side else _ABSENT for side in (first, second))
            yield FieldDifference(f"{path}.{key}", recorded, replayed)


def _of_numbers(channel: str, path: str, first: float, second: float, allow: Tolerances) -> Iterator[FieldDifference]:
    if first == second or (math.isnan(_as_float(first)) and math.isnan(_as_float(second))):
        return
    amount = _apart(first, second)
    if not amount <= allow.allowed(channel, path, _as_float(first)):
        yield FieldDifference(path, _render(first), _render(second), amount)


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


def _of_texts(channel: str, path: str, first: str, second: str, allow: Tolerances) -> Iterator[FieldDifference]:
    """Yield a difference unless the texts differ in numbers only, and these are within the tolerance."""
    first, second = without_place(first), without_place(second)
    if first == second:
        return
    numbers = zip(_NUMBER.findall(first), _NUMBER.findall(second), strict=False)
    same_input = _NUMBER.split(first) == _NUMBER.split(second)
    close = same_input and all(_is_close(channel, path, *pair, allow) for pair in numbers)
    if not close:
        yield FieldDifference(path, _render(first), _render(second))


def _is_close(channel: str, path: str, first: str, second: str, allow: Tolerances) -> bool:
    """Return whether two numbers in texts are within the tolerance; without one they must be written alike."""
    allowed = allow.allowed(channel, path, float(first))
    return first == second or (allowed > 0.0 and abs(float(first) - float(second)) <= allowed)


def _of_stamps(path: str, recorded: Any, replayed: Any, allow: Tolerances) -> Iterator[FieldDifference]:
    yield from _of_times(path, _seconds(recorded), _seconds(replayed), allow)


def _seconds(stamp: Any) -> float:
    fraction = stamp.nsec if hasattr(stamp, "nsec") else stamp.nanosec
    return float(stamp.sec) + float(fraction) / 1e9


def _of_times(path: str, first_s: float, second_s: float, allow: Tolerances) -> Iterator[FieldDifference]:
    amount = abs(first_s - second_s)
    # Floats of today hold a quarter of a microsecond.
    if amount > allow.time_s + 1e-6 * bool(allow.time_s):
        yield FieldDifference(path, f"{first_s:.6f}", f"{second_s:.6f}", amount)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _render(value: Any) -> str:
    if isinstance(value, (bytes, bytearray)):
        return f"<{len(value)} bytes>"
    text = f"{value:.9g}" if isinstance(value, float) else repr(value)
    return beginning(text, _SHOWN, "...")
