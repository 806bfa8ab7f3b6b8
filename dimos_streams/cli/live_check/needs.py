"""The topics that the modules of a blueprint receive, and their requirements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dimos_streams.blueprint import Blueprint
from dimos_streams.blueprint.classes import longest_gaps, module_class, required_inputs
from dimos_streams.blueprint.wiring import Port, ports_of, wire
from dimos_streams.messages.base import Message
from dimos_streams.messages.geometry_msgs import Twist, TwistStamped
from dimos_streams.module import Module


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One input of one module, and what it expects of its topic."""

    port: Port
    required: bool
    connected: bool
    """True if a run connects it; an optional input is not, if neither a module nor ``external`` sends to it."""
    longest_gap_s: float | None
    """The longest time, in seconds, that it may bring nothing; None if that does not matter."""

    def fault(self, message: Message) -> str:
        """Return what is wrong with a message by the input's own test, or nothing."""
        stream = self.port.stream
        if stream.fault is None:
            return ""
        if stream.also is not None and isinstance(message, stream.also.takes):
            return stream.fault(stream.also()(message))
        return stream.fault(message) if isinstance(message, stream.message) else ""

    @property
    def taken(self) -> dict[str, type[Message]]:
        """The types that it takes, by name."""
        return {cls.msg_name: cls for cls in self.port.stream.messages}


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A topic that modules receive."""

    topic: str
    uses: tuple[Use, ...]
    senders: tuple[str, ...]
    """The modules of the blueprint that send to it; none if it comes from outside."""

    @property
    def types(self) -> dict[str, type[Message]]:
        """The types that its inputs take, by name."""
        return {name: cls for use in self.uses for name, cls in use.taken.items()}

    def fault(self, message: Message) -> str:
        """Return what is wrong with a message by the first of its inputs that would skip it, or nothing."""
        return next(filter(None, (use.fault(message) for use in self.uses)), "")


def needs_of(blueprint: Blueprint) -> list[Need]:
    """Return what the modules receive, in the order of the blueprint. Raises ``BlueprintError`` as ``wire`` does."""
    classes, ports = _ports(blueprint)
    wiring = wire(blueprint)
    senders: dict[str, list[str]] = {}
    uses: dict[str, list[Use]] = {}
    for port in ports:
        if port.stream.direction == "out":
            senders.setdefault(port.topic, []).append(port.module)
            continue
        spec, cls = blueprint.modules[port.module], classes[port.module]
        use = Use(
            port=port,
            required=port.stream.name in required_inputs(spec, cls),
            connected=port.stream.name in wiring[port.module].topics,
            longest_gap_s=longest_gaps(spec, cls).get(port.stream.name),
        )
        uses.setdefault(port.topic, []).append(use)
    return [
        Need(topic=topic, uses=tuple(used), senders=tuple(dict.fromkeys(senders.get(topic, ()))))
        for topic, used in uses.items()
    ]


def motors_of(blueprint: Blueprint) -> list[Port]:
    """Return the velocities that no module of the blueprint takes: they drive a robot that is outside."""
    _, ports = _ports(blueprint)
    inside = {channel for port in ports if port.stream.direction == "in" for channel in port.channels}
    velocities = (Twist, TwistStamped)
    return [
        port
        for port in ports
        if port.stream.direction == "out" and port.stream.message in velocities and port.channel not in inside
    ]


def _ports(blueprint: Blueprint) -> tuple[Mapping[str, type[Module]], list[Port]]:
    """Return the classes of the modules by name, and all streams that are wired."""
    classes = {name: module_class(spec) for name, spec in blueprint.modules.items()}
    ports = [port for name, spec in blueprint.modules.items() for port in ports_of(spec, classes[name])]
    return classes, [port for port in ports if port.topic]
