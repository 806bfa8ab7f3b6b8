"""The fields that tolerances may name: those of what a run sends and says."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from dimos_streams.errors import MessageError, UserError, suggest
from dimos_streams.messages.base import Message, fields_of
from dimos_streams.messages.codec import split_channel, type_named
from dimos_streams.messages.plain_classes import class_of
from dimos_streams.regression.tolerances import Tolerances
from dimos_streams.tool_stream.protocol.channels import CALLS, EVENTS

STAMPS = {"std_msgs.Time", "builtin_interfaces.Time"}
"""The types that are compared as times, by the tolerance for these."""
_DATA = "data"
_DATA_OF_EVENTS = "data.NAME"
_SHOWN = 30


def check_fields(tolerances: Tolerances, sent: Collection[str], compared: Collection[str]) -> None:
    """Raise ``UserError`` for a tolerance of a field that nothing has. ``sent`` are the channels of the whole run,
    since one file may be for several replays; ``compared`` are those of the modules under test, which it lists."""
    fields = {channel: list(_fields_of(channel)) for channel in (*sent, CALLS, EVENTS)}
    by_topic: dict[str, list[str]] = {}
    for channel, paths in fields.items():
        by_topic.setdefault(split_channel(channel)[0], []).extend(paths)
    for name in tolerances.fields:
        topic, colon, path = name.rpartition(":")
        if colon and topic not in by_topic:
            known = ", ".join(sorted(by_topic))
            raise UserError(
                f"tolerance of {name!r}: no topic is called {topic!r}{suggest(topic, by_topic)} (valid: {known})"
            )
        if any(_is_of(path, paths) for paths in ([by_topic[topic]] if colon else by_topic.values())):
            continue
        valid = by_topic[topic] if colon else _listed(fields, compared)
        whose = f"topic {topic!r} has no field" if colon else "no message or tool event of this run has a field"
        raise UserError(f"tolerance of {name!r}: {whose} {path!r}{suggest(path, valid)} ({_valid(valid)})")


def _valid(paths: Sequence[str]) -> str:
    if not paths:
        return "valid: none: it is compared as a whole"
    return f"valid: {', '.join(paths[:_SHOWN])}{', ...' if len(paths) > _SHOWN else ''}; stamps go by time_s"


def _is_of(path: str, paths: Sequence[str]) -> bool:
    """Return whether a path leads to a field, or to something around fields."""
    within = _DATA if path.startswith(f"{_DATA}.") and _DATA_OF_EVENTS in paths else path
    return any(known == within or known.startswith(f"{within}.") for known in paths)


def _listed(fields: Mapping[str, Sequence[str]], compared: Collection[str]) -> list[str]:
    return list(dict.fromkeys(path for channel in (*sorted(compared), EVENTS) for path in fields.get(channel, ())))


def _fields_of(channel: str) -> Iterator[str]:
    """Yield the paths in a channel's messages, as tolerances name them: without indices, and without stamps."""
    if channel == EVENTS:
        yield from ("text", _DATA_OF_EVENTS)
        return
    try:
        yield from _paths(type_named(split_channel(channel)[1], channel), "")
    except MessageError:  # of a type that is not known here: it is compared as a whole
        return


def _paths(kind: type[Message], prefix: str) -> Iterator[str]:
    for field in fields_of(kind):
        path = prefix + field.name
        if not field.is_message:
            yield path
        elif field.type not in STAMPS:
            yield from _paths(class_of(field), f"{path}.")
