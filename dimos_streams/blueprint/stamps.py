"""The machines whose clocks stamp messages, where a blueprint has several machines."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from dimos_streams.blueprint.classes import module_class
from dimos_streams.blueprint.machines import machines_of
from dimos_streams.blueprint.model import Blueprint
from dimos_streams.blueprint.wiring import Port, external_channels, ports_of
from dimos_streams.messages.codec import split_channel

UNKNOWN = "?"
"""The beginning of the name of an unknown clock, that of a topic that modules of several machines publish."""
OUTSIDE = ""
"""The clock of what comes from outside of the blueprint."""


def stamping_machines(blueprint: Blueprint) -> dict[str, str]:
    """The machine whose clock stamps the messages of a topic, by topic; none where a blueprint has no machines.

    If a class declares that an output has the stamps of an input (``Module.stamped_as``), the machine is that of the
    input. Topics that come from outside are left out. Raises ``BlueprintError`` if a class can't be imported.
    """
    if not machines_of(blueprint):
        return {}
    sending: dict[str, list[Port]] = {}
    for spec in blueprint.modules.values():
        for port in ports_of(spec, module_class(spec)):
            if port.stream.direction == "out":
                sending.setdefault(port.topic, []).append(port)
    origins = _Origins(blueprint, sending, {split_channel(each)[0] for each in external_channels(blueprint)})
    return {topic: origins.clock(topic) for topic in sending}


@dataclass(frozen=True, slots=True)
class _Origins:
    blueprint: Blueprint
    sending: Mapping[str, list[Port]]
    """Outputs by topic."""
    outside: Set[str]

    def clock(self, topic: str, followed: tuple[str, ...] = ()) -> str:
        """The machine of a topic's stamps."""
        clocks = {self._clock_of(port, (*followed, topic)) for port in self.sending.get(topic, ())}
        return clocks.pop() if len(clocks) == 1 else f"{UNKNOWN}{topic}"

    def _clock_of(self, port: Port, followed: tuple[str, ...]) -> str:
        spec = self.blueprint.modules[port.module]
        for source in module_class(spec).stamped_as.get(port.stream.name, ()):
            topic = spec.topic(source) or ""
            if topic in self.sending and topic not in followed:
                return self.clock(topic, followed)
            if topic in self.outside:
                return OUTSIDE
        return spec.machine or f"{UNKNOWN}{port.topic}"
