"""The wiring of a blueprint: the channel of each stream of each module, and the connections that follow."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dimos_streams.blueprint.classes import module_class, module_skills
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.blueprint.names import absolute
from dimos_streams.bus import Delivery
from dimos_streams.common.names import namespace_of, namespace_of_topic
from dimos_streams.messages.base import Message
from dimos_streams.module import Module
from dimos_streams.skill import skills_of
from dimos_streams.streams import StreamSpec
from dimos_streams.tool_stream.review import review_skill


@dataclass(frozen=True, slots=True)
class Port:
    """One stream of one module at its place."""

    module: str
    stream: StreamSpec
    topic: str
    """Empty for a stream that its blueprint leaves unwired."""

    @property
    def name(self) -> str:
        """The stream's address in its blueprint, as ``"follow.cmd_vel"``."""
        return f"{self.module}.{self.stream.name}"

    @property
    def type_name(self) -> str:
        """The name of the stream's message type, as ``"geometry_msgs.Twist"``."""
        return self.stream.message.msg_name

    @property
    def channel(self) -> str:
        """Topic and type as LCM knows them. Not checked here for its length."""
        return f"{self.topic}#{self.type_name}"

    @property
    def channels(self) -> tuple[str, ...]:
        """The channels of the stream: ``channel``, and behind it those of the other types that an input takes."""
        return tuple(f"{self.topic}#{cls.msg_name}" for cls in self.stream.messages)

    def where(self, blueprint: Blueprint) -> str:
        """The line of its blueprint that gives the stream its topic, or else of its module."""
        return blueprint.modules[self.module].where("remap", self.stream.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleWiring:
    """The streams that a host connects of one module."""

    module: str
    topics: Mapping[str, str]
    """Topics by the names of the streams to connect. All other streams stay unconnected."""
    unwired: tuple[str, ...]
    """The inputs that nothing in the blueprint, nor outside, sends to."""
    skills: tuple[str, ...]
    """Public names of its skills."""


def wire(blueprint: Blueprint) -> dict[str, ModuleWiring]:
    """The wiring of each module, by name, in the blueprint's order.

    Raises ``BlueprintError`` if a class can't be imported. What else may be wrong is found by ``check``.
    """
    classes = {name: module_class(spec) for name, spec in blueprint.modules.items()}
    supplied = external_channels(blueprint).union(
        *(output_channels(spec, classes[name]) for name, spec in blueprint.modules.items())
    )
    return {
        name: _wiring(spec, ports_of(spec, classes[name]), supplied, public_skills(spec, classes[name]))
        for name, spec in blueprint.modules.items()
    }


def output_channels(spec: ModuleSpec, cls: type[Module]) -> frozenset[str]:
    """The channels that a module publishes on."""
    return frozenset(port.channel for port in ports_of(spec, cls) if port.stream.direction == "out")


def topics_of(spec: ModuleSpec, cls: type[Module], supplied: Collection[str]) -> dict[str, str]:
    """The topics of the streams to connect of one module; ``supplied`` are the channels that anything sends to."""
    return dict(_wiring(spec, ports_of(spec, cls), supplied, ()).topics)


def ports_of(spec: ModuleSpec, cls: type[Module]) -> list[Port]:
    """The streams of a module at their places, in the order of their declaration."""
    return [Port(spec.name, stream, spec.topic(stream.name) or "") for stream in cls.streams().values()]


def message_types(blueprint: Blueprint) -> list[type[Message]]:
    """The classes of all that the modules send and receive. Raises ``BlueprintError`` as ``wire`` does."""
    ports = (port for spec in blueprint.modules.values() for port in ports_of(spec, module_class(spec)))
    return list(dict.fromkeys(cls for port in ports for cls in port.stream.messages))


def external_channels(blueprint: Blueprint) -> set[str]:
    """The channels that come from outside, with their slash."""
    return {absolute(channel) for channel in blueprint.external}


def channels_of(blueprint: Blueprint) -> dict[str, str]:
    """The channels that anything sends to, each with the namespace of the module that does. What comes from outside
    is of the namespace that its topic begins with."""
    found = {
        channel: namespace_of(name)
        for name, spec in blueprint.modules.items()
        for channel in output_channels(spec, module_class(spec))
    }
    namespaces = set(map(namespace_of, blueprint.modules))
    for channel in sorted(external_channels(blueprint) - found.keys()):
        found[channel] = namespace_of_topic(channel, namespaces)
    return {channel: found[channel] for channel in sorted(found)}


def agents_of(blueprint: Blueprint) -> frozenset[str]:
    """The names of the modules that are agents, by their classes."""
    skills = ((name, skills_of(module_class(spec)).values()) for name, spec in blueprint.modules.items())
    return frozenset(name for name, each in skills if review_skill(skill.policy for skill in each) is not None)


def deliveries(blueprint: Blueprint) -> dict[str, Delivery]:
    """The choices of delivery by topic, with their slash; of two for one topic the last counts."""
    return {absolute(topic): choice for topic, choice in blueprint.delivery.items()}


def public_skills(spec: ModuleSpec, cls: type[Module]) -> tuple[str, ...]:
    """The names under which the module's skills are called. Raises ``TypeError`` for a skill without a schema."""
    return tuple(skill.info(spec.prefix).name for skill in module_skills(spec, cls).values())


def _wiring(spec: ModuleSpec, ports: list[Port], supplied: Collection[str], skills: tuple[str, ...]) -> ModuleWiring:
    def connected(port: Port) -> bool:
        is_supplied = port.stream.external or any(channel in supplied for channel in port.channels)
        return bool(port.topic) and (port.stream.direction == "out" or is_supplied)

    return ModuleWiring(
        module=spec.name,
        topics={port.stream.name: port.topic for port in ports if connected(port)},
        unwired=tuple(p.stream.name for p in ports if p.stream.direction == "in" and not connected(p)),
        skills=skills,
    )
