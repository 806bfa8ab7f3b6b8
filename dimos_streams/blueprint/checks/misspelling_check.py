"""The check of topics that have one end only because they are misspelt. Many have one end on purpose: outputs that
nobody reads, optional inputs to which nothing is sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from dimos_streams.blueprint.model import Blueprint
from dimos_streams.blueprint.names import absolute
from dimos_streams.blueprint.wiring import Port
from dimos_streams.common.names import namespace_of
from dimos_streams.common.readable.spelling import misspelt
from dimos_streams.documents.problem import Problem
from dimos_streams.errors import did_you_mean
from dimos_streams.messages.codec import split_channel


@dataclass(frozen=True, slots=True)
class _TopicEnd:
    """One end of a topic: an output, an input, or what is outside."""

    name: str
    """The address of an output or input; empty for what is outside."""
    channels: tuple[str, ...]
    """The channel with the type that it has, and those with others that an input takes."""
    whose: str
    where: str


def misspelt_topics(blueprint: Blueprint, ports: Sequence[Port], unfed: Set[str]) -> Iterator[Problem]:
    """Yield warnings of topics without another end that are misspelt from one of the same type and namespace that has
    it. ``unfed`` are the names of inputs that have a problem of their own."""
    sent = [*_outputs(blueprint, ports), *_outside(blueprint)]
    taken = list(_inputs(blueprint, ports))
    namespaces = {spec.namespace for spec in blueprint.modules.values()}
    readable = {channel for end in taken for channel in end.channels}
    yield from _misspelt(sent, _Topics(readable, namespaces), "nothing takes")
    # What is sent and not taken is named above, with the input that may be meant.
    heard = {channel for end in sent for channel in end.channels if channel in readable}
    judged = [end for end in taken if end.name not in unfed]
    yield from _misspelt(judged, _Topics(heard, namespaces), "nothing sends")


class _Topics:
    """Topics that may be meant by others."""

    def __init__(self, channels: Set[str], namespaces: Set[str]) -> None:
        self.channels, self._namespaces = channels, namespaces
        self._by_type: dict[str, set[str]] = defaultdict(set)
        self._by_place: dict[tuple[str, str], set[str]] = defaultdict(set)
        for topic, type_name in map(split_channel, channels):
            self._by_type[type_name].add(topic)
            self._by_place[type_name, namespace_of(topic)].add(topic)

    def meant_by(self, channel: str) -> list[str]:
        """Return the topics from which that of a channel is misspelt: in a robot's namespace none of another."""
        topic, type_name = split_channel(channel)
        place = namespace_of(topic)
        known = place.removeprefix("/") in self._namespaces
        found = self._by_place.get((type_name, place)) if known else self._by_type.get(type_name)
        return misspelt(topic, found or ())


def _misspelt(ends: Iterable[_TopicEnd], others: _Topics, lack: str) -> Iterator[Problem]:
    for end in ends:
        if others.channels.isdisjoint(end.channels) and (near := others.meant_by(end.channels[0])):
            yield Problem(f"{lack} {end.channels[0]!r}, {end.whose}{did_you_mean(near)}", end.where, "warning")


def _outputs(blueprint: Blueprint, ports: Iterable[Port]) -> Iterator[_TopicEnd]:
    for port in ports:
        if port.stream.direction == "out":
            yield _TopicEnd(port.name, (port.channel,), f"to which {port.name} publishes", port.where(blueprint))


def _outside(blueprint: Blueprint) -> Iterator[_TopicEnd]:
    for channel in blueprint.external:
        yield _TopicEnd("", (absolute(channel),), "which is external", blueprint.sources.get(channel, ""))


def _inputs(blueprint: Blueprint, ports: Iterable[Port]) -> Iterator[_TopicEnd]:
    for port in ports:
        if port.stream.direction == "in":
            yield _TopicEnd(port.name, port.channels, f"which {port.name} takes", port.where(blueprint))
