"""Events of tool streams: the dataclass that code handles, and its form on the wire."""

from __future__ import annotations

import enum
import functools
import operator
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pydantic_core import PydanticSerializationError, from_json, to_json, to_jsonable_python

from dimos_streams.common.names import MAX_NAME, fault_of_names
from dimos_streams.common.nested import is_deeper
from dimos_streams.common.secrets import has_secret, redacted_data
from dimos_streams.common.text import parse_command, parse_json, repaired
from dimos_streams.errors import MessageError, SkillError
from dimos_streams.messages.codec import channel_name
from dimos_streams.messages.dimos_streams import (
    ModuleStatus,
    SkillCall,
    SkillCancel,
    ToolStreamEvent,
    ToolStreamRequest,
)
from dimos_streams.skill import OnLoss

EVENTS = channel_name("/tool_streams", ToolStreamEvent)
REQUESTS = channel_name("/tool_stream_requests", ToolStreamRequest)
CALLS = channel_name("/skill_calls", SkillCall)
CANCELS = channel_name("/skill_cancels", SkillCancel)
STATUS = channel_name("/module_status", ModuleStatus)
OF_CALLS = (EVENTS, STATUS, CALLS, CANCELS, REQUESTS)
"""The channels on which modules speak of calls and of themselves, in every run."""

ACK, NACK, GONE, DESCRIBE, PENDING = "ack", "repair", "gone", "describe", "pending"
"""Kinds of a ``ToolStreamRequest``, as they are called on the wire: events have come; events are to be sent again;
they are not kept any more (a publisher's answer); modules are to say what skills they have; a call waits for what it
needs to begin (the bridge's answer)."""

CHILD = "~"
"""The separator in the id of a call that belongs to another: between that one's id and a number (``family.py``)."""
PARENT = "parent"
"""The name under which the host of a parent acknowledges what it has of a child: a child has one, and its other
receivers don't wait for that."""

STOPPED = "an operator has stopped the robot"
"""The beginning of the reason for which the calls that a stop of the robot ends are cancelled."""

MISFIT = "misfit"
"""The key in a completed close under which stands, in words, how the result is not as its skill declares it."""

UNAWAITED = "unawaited"
"""The key in a close under which stands, in words, what the skill made and did not await."""
OF_AUTHORS = (MISFIT, UNAWAITED)
"""The keys in a close of what is wrong with the code of its skill, though the call has ended as it says."""

BAD_ARGUMENTS = "arguments"
"""The ``error`` in the data of a close that rejects a call whose arguments its module does not take."""

CALL_ID_RULE = f"valid: up to {MAX_NAME} letters, digits and ._~:-, with a letter, a digit or _ first"
_CALL_ID = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9._~:-]{{0,{MAX_NAME - 1}}}")

MAX_PAYLOAD = 48_000
"""Maximum size of text and data in one event, in bytes: with its other fields it stays below what an untuned machine
delivers."""
MAX_EVENT = 60_000
"""Maximum size of a whole event, in bytes; no publisher sends a larger one."""
REQUEST_BYTES = 512 * 1024
"""Maximum size, in bytes, of the requests that wait for a handler; likewise of the calls, and of the cancels."""
MAX_ARGUMENTS = 40_000
"""Maximum size of a call's arguments as JSON, in bytes: call and ``open`` event must each fit into one datagram."""
MAX_DEPTH = 100
"""Maximum depth of an event's data; an object or a list is a level. Whoever hands an event on puts a few levels
around its data, and readers of JSON refuse what has more than 200."""
MAX_ARGUMENTS_DEPTH = 64
"""Maximum depth of a call's arguments, which are within the data of its ``open``, and within the arguments of its
review."""
MAX_REASON = 4000
"""Maximum number of characters of the reason for which a call is refused or is to end."""
MAX_SEQ = 2**30
"""The largest valid seq; there is room in its field for whatever follows."""
MIN_UTIME, MAX_UTIME = -(2**63), 2**63 - 1
"""The bounds of an event's time, those of its field and of databases. Who has no clock may be before 1970."""

EventType = Literal["open", "update", "progress", "close", "gap"]
EVENT_TYPES = frozenset({"open", "update", "progress", "close"})
"""The types of a publisher's events. ``gap`` is made by readers, for events that can't be had any more."""


class Outcome(enum.StrEnum):
    """The outcome of a call: how it ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    LOST = "lost"
    REJECTED = "rejected"


OUTCOMES = tuple(Outcome)  # no set: what is looked up may not be hashable


@dataclass(slots=True, kw_only=True)  # frozen for type checkers: at run time an event would take three times as long
class ToolEvent:
    """One event of a call's tool stream. ``seq`` counts 1..n; ``open`` is first, ``close`` last. An event never
    changes."""

    utime: Final[int]
    """The time at which it happened, in µs since the Unix epoch, by the clock of the process that it comes from."""
    call_id: Final[str]
    seq: Final[int]
    type: Final[EventType]
    module: Final[str]
    skill: Final[str]
    caller: Final[str]
    text: Final[str]
    data: Final[Mapping[str, Any]] = field(default_factory=dict)
    """The data that go with the text; those of a ``close`` include ``outcome``, and ``result`` if there is one."""
    robot: Final[str] = field(default="")
    """The robot that it is from, as a hub tells it; empty at a robot's own bridge."""
    instance: Final[str] = field(default="", compare=False, repr=False)
    """The start of the module that writes the stream; on the bus only, empty if it is not known."""
    of_agent: Final[bool] = field(default=True, compare=False, repr=False)
    """False if whoever has handed it on knows that its module is no agent, whatever its skill is called."""

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of the call, or None before its close."""
        return Outcome(self.data.get("outcome", Outcome.FAILED)) if self.type == "close" else None

    def to_dict(self) -> dict[str, Any]:
        """The fields as they are served over HTTP."""
        fields = {
            "utime": self.utime,
            "call_id": self.call_id,
            "seq": self.seq,
            "type": self.type,
            "module": self.module,
            "skill": self.skill,
            "caller": self.caller,
            "text": self.text,
            "data": dict(self.data),
        }
        return {**fields, "robot": self.robot} if self.robot else fields

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> ToolEvent:
        """The inverse of ``to_dict``. Raises ``ValueError`` for fields that are missing, of the wrong type, or
        numbers that no event has."""
        try:
            event = cls(**fields)
        except TypeError as error:
            raise ValueError(f"not a tool stream event: {error}") from error
        if not all(map(isinstance, _FIELDS_OF(event), _FIELD_TYPES.values())):
            name = next(name for name, kind in _FIELD_TYPES.items() if not isinstance(getattr(event, name), kind))
            raise ValueError(f"not a tool stream event: {name} is {getattr(event, name)!r}")
        if event.type not in EVENT_TYPES and event.type != "gap":
            raise ValueError(f"not a tool stream event: type is {event.type!r}")
        least = 0 if event.type == "gap" else 1  # one of offsets is of no call, and has no seq
        most = last_seq_of(event.type)
        if isinstance(event.seq, bool) or not least <= event.seq <= most:
            raise ValueError(f"not a tool stream event: seq is {event.seq!r}; valid: {least} to {most}")
        if isinstance(event.utime, bool) or not MIN_UTIME <= event.utime <= MAX_UTIME:
            raise ValueError(f"not a tool stream event: utime is {event.utime!r}; valid: {MIN_UTIME} to {MAX_UTIME}")
        if event.type == "close" and event.data.get("outcome", Outcome.FAILED) not in OUTCOMES:
            raise ValueError(f"not a tool stream event: outcome is {event.data['outcome']!r}")
        return event


def last_seq_of(type: str) -> int:
    """Return the largest valid seq of a type of event: the close that a bridge makes for a module stands behind the
    last event that the module can have sent."""
    return MAX_SEQ + (type == "close")


_FIELD_TYPES: dict[str, type] = {
    "utime": int,
    "call_id": str,
    "seq": int,
    "type": str,
    "module": str,
    "skill": str,
    "caller": str,
    "text": str,
    "data": dict,
    "robot": str,
}
_FIELDS_OF = operator.attrgetter(*_FIELD_TYPES)


_JSON_RULE = "valid: texts, numbers, True, False, None, lists, dicts, dataclasses and pydantic models"

_LARGE_DIGITS = 309
"""Number of digits from which on a whole number may be beyond all that a float can be, which readers refuse."""
_DIGITS, _LARGE = b"0123456789", b"0" * _LARGE_DIGITS
_AS_ZEROS = bytes.maketrans(_DIGITS, b"0" * len(_DIGITS))


def is_call_id(text: str) -> bool:
    """Return whether a text may be the id of a call. An id is part of a URL's path: with a slash in it, or as ``..``,
    nobody could ask for the call over HTTP, or end it."""
    return len(text) <= MAX_NAME and _has_form_of_call_id(text)


@functools.lru_cache(maxsize=1024)  # it comes with every event of a call
def _has_form_of_call_id(text: str) -> bool:
    return _CALL_ID.fullmatch(text) is not None


def check_names(call: SkillCall, channel: str) -> None:
    """Raise ``MessageError`` for a request to run a skill with a name that nobody can have, or an id that is none."""
    ids = (call.call_id, call.parent) if call.parent else (call.call_id,)
    fault = "" if all(map(is_call_id, ids)) else f"an id in it is none; {CALL_ID_RULE}"
    if fault := fault or fault_of_names((call.skill, call.caller)):
        raise MessageError(channel, SkillCall.msg_name, fault)


def on_loss_of(call: SkillCall, channel: str) -> OnLoss | None:
    """Return the ``on_loss`` of a request to run a skill, or None if it has none. Raises ``MessageError`` for an
    invalid one."""
    if call.on_loss not in ("", *typing.get_args(OnLoss)):
        raise MessageError(
            channel, SkillCall.msg_name, f"on_loss is {call.on_loss!r} (valid: stop, continue, or nothing)"
        )
    return typing.cast("OnLoss | None", call.on_loss or None)


def json_text(value: Any) -> str:
    """Return compact JSON; pydantic models and dataclasses become objects, NaN and what no float can be become null,
    and text is repaired.

    Raises ``SkillError`` for values that have no JSON form.
    """
    return json_bytes(value).decode()


def json_bytes(value: Any) -> bytes:
    """Return the text of ``json_text`` in UTF-8. Raises as it does."""
    try:
        encoded = to_json(value, inf_nan_mode="null")
        if not _may_have_large_number(encoded):
            return encoded
    except PydanticSerializationError:
        pass  # because of half a character, or of more
    try:
        return to_json(repaired(to_jsonable_python(value)), inf_nan_mode="null")
    except ValueError as error:  # pydantic's, and its plain one for what contains itself or is too deep
        raise SkillError(f"not JSON: {error}; {_JSON_RULE}") from error


def _may_have_large_number(encoded: bytes) -> bool:
    """Return whether so many digits follow each other in JSON that readers may refuse the number. Then there is a
    digit at one of the steps of that length: text is not looked through for it, which would take longer than all
    else."""
    steps = encoded[_LARGE_DIGITS - 1 :: _LARGE_DIGITS]
    return len(steps.translate(None, _DIGITS)) < len(steps) and _LARGE in encoded.translate(_AS_ZEROS)


def json_without_secrets(value: Any) -> bytes:
    """Return ``json_bytes`` of a value with ``[redacted]`` in place of each secret of this process. Raises as it
    does."""
    encoded = json_bytes(value)
    return json_bytes(redacted_data(from_json(encoded))) if has_secret(encoded.decode()) else encoded


def arguments_object(text: str, channel: str, type_name: str) -> dict[str, Any]:
    """Return the arguments in a message's field, as ``json_object`` does; each of them is there once."""
    return json_object(text, channel, type_name, parse_command, MAX_ARGUMENTS_DEPTH)


def json_object(
    text: str,
    channel: str,
    type_name: str,
    parse: Callable[[str], Any] = parse_json,
    most_depth: int = MAX_DEPTH,
) -> dict[str, Any]:
    """Return the JSON object in a message's field; empty text is an empty object. Raises ``MessageError``."""
    if not text:
        return {}
    try:
        value = parse(text)
    except ValueError as error:
        raise MessageError(channel, type_name, f"bad JSON: {error}") from error
    if not isinstance(value, dict):
        raise MessageError(channel, type_name, f"JSON of type {type(value).__name__}, not an object")
    if is_deeper(text, most_depth):
        raise MessageError(channel, type_name, f"JSON nested more than {most_depth} deep")
    return value
