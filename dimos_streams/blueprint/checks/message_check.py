"""The check of the message types of a blueprint's streams: one definition a name, and classes that fit it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from dimos_streams.blueprint.model import Blueprint
from dimos_streams.blueprint.wiring import Port
from dimos_streams.documents.problem import Problem
from dimos_streams.messages import registry
from dimos_streams.messages.base import Message
from dimos_streams.messages.generation.definitions import LcmGenError
from dimos_streams.messages.generation.freshness import stale_types


def message_problems(blueprint: Blueprint, ports: Iterable[Port]) -> Iterator[Problem]:
    """Types of one name and several definitions, and classes that are older than their definitions."""
    users: dict[type[Message], list[Port]] = defaultdict(list)
    for port in ports:
        for cls in port.stream.messages:
            users[cls].append(port)
    yield from _definition_problems(blueprint, users)
    yield from stale_problems(users)


def stale_problems(classes: Iterable[type[Message]]) -> Iterator[Problem]:
    """Classes that are older than their definitions."""
    try:
        stale_classes = stale_types(classes)
    except LcmGenError as error:
        yield Problem(f"whether message classes fit their definitions is not known: {error}", severity="warning")
    else:
        for stale in stale_classes:
            yield Problem(stale.text, stale.where)


def _definition_problems(blueprint: Blueprint, users: Mapping[type[Message], list[Port]]) -> Iterator[Problem]:
    """Types that would not understand each other although they are called the same."""
    classes: dict[str, dict[bytes, type[Message]]] = defaultdict(dict)
    for cls in users:
        classes[cls.msg_name].setdefault(cls._get_packed_fingerprint(), cls)
    for name, found in classes.items():
        known = registry.known_definition(name)
        if known is not None:
            found.setdefault(known._get_packed_fingerprint(), known)
        if len(found) > 1:
            by = [_user(cls, fingerprint, users) for fingerprint, cls in found.items()]
            last = [port for cls in found.values() for port in users.get(cls, ())][-1]
            text = f"message type {name!r} has {len(found)} definitions: {'; '.join(by)}: give one another name"
            yield Problem(text, blueprint.modules[last.module].where("type"))


def _user(cls: type[Message], fingerprint: bytes, users: Mapping[type[Message], list[Port]]) -> str:
    """``"a.b.Reading (fingerprint 01234567) of sensor.readings"``."""
    ports = [
        port.name
        for other, group in users.items()
        if other.msg_name == cls.msg_name and other._get_packed_fingerprint() == fingerprint
        for port in group
    ]
    return f"{cls.__module__} (fingerprint {fingerprint.hex()})" + (f" of {', '.join(ports)}" if ports else "")
