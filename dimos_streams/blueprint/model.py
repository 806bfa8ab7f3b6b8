"""The model of a blueprint: an inert description of modules, their configs and their wiring.

Nothing here imports the classes that a blueprint names. Whatever begins with a slash (a remap's target, an external
channel) is absolute; everything else is relative to the namespace of the module or blueprint that says it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from dimos_streams.blueprint.names import absolute, checked_machine, checked_name, checked_namespace, inside
from dimos_streams.bus.delivery import Delivery
from dimos_streams.common.json.replacement import with_value
from dimos_streams.common.names import namespace_of, prefix_of
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.errors import UserError, suggest

Restart = Literal["never", "on-failure", "always"]


class UnknownModuleError(UserError):
    """Raised for a name that no module of a blueprint has."""


class _DescribedModel(FrozenModel):
    """A frozen model that equals any other with the same content, wherever that was written."""

    sources: Mapping[str, str] = Field(default={}, exclude=True, repr=False)
    """The lines at which the parts were written. They take no part in comparisons and dumps."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self.model_dump() == other.model_dump()

    __hash__ = None  # type: ignore[assignment]


class ModuleSpec(_DescribedModel):
    """One module of a blueprint. ``sources`` has keys like ``"config.distance_m"``, and ``""`` for the whole."""

    name: str
    """The name with its namespaces: ``"robot1/follow"``. Unique in the blueprint."""
    type: str
    """``"package.module:Class"``."""
    config: Mapping[str, Any] = {}
    """The plain data (as JSON has it) from which the class's config is made."""
    remap: Mapping[str, str | None] = {}
    """The topics of streams whose topic is not their own name; None leaves an input unwired."""
    process: str | None = None
    """The label of its process: modules of one label share a process, and None is a process of its own."""
    restart: Restart = "on-failure"
    machine: str | None = None
    """The computer on which it runs, where a blueprint has several; with its namespaces, as the name."""

    @model_serializer(mode="wrap")
    def _without_machine(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave the machine out if there is none: most blueprints have one machine, and are described without it."""
        described: dict[str, Any] = dump(self)
        if self.machine is None:
            described.pop("machine", None)
        return described

    @property
    def namespace(self) -> str:
        """``"robot1"`` for ``"robot1/follow"``; empty without one."""
        return namespace_of(self.name)

    @property
    def prefix(self) -> str:
        """The prefix of the module's topics and resources: ``"robot1/"``, or nothing."""
        return prefix_of(self.name)

    @property
    def folder(self) -> str:
        """The folder of the file that names its class; empty for the working directory, or if there is no file."""
        return os.path.dirname(self.where("type").rpartition(":")[0])

    def topic(self, stream: str) -> str | None:
        """The topic of a stream of this module, or None for an input that is left unwired."""
        target = self.remap.get(stream, stream)
        return None if target is None else absolute(target, self.prefix)

    def where(self, *path: str) -> str:
        """The line of a part, or else of the nearest thing around it: ``where("config", "distance_m")``."""
        for length in range(len(path), -1, -1):
            key = ".".join(path[:length])
            if key in self.sources:
                return self.sources[key]
        return ""

    def is_as_in(self, other: ModuleSpec) -> bool:
        """Return whether both were written at the same place, as in a blueprint that two others include."""
        return self.where() == other.where() != ""

    def changed(self, field: str, value: str | None, source: str) -> ModuleSpec:
        """Return the module with one of its own fields replaced."""
        return self.model_copy(update={field: value, "sources": {**self.sources, field: source}})

    def configured(self, path: Sequence[str], value: Any, source: str) -> ModuleSpec:
        """Return the module with one config value replaced; ``path`` leads to it through nested configs."""
        key = ".".join(("config", *path))
        kept = {k: v for k, v in self.sources.items() if k != key and not k.startswith(f"{key}.")}
        return self.model_copy(
            update={"config": with_value(self.config, path, value), "sources": {**kept, key: source}}
        )

    def remapped(self, stream: str, target: str | None, source: str) -> ModuleSpec:
        """Return the module with another topic for one stream."""
        sources = {**self.sources, f"remap.{stream}": source}
        return self.model_copy(update={"remap": {**self.remap, stream: target}, "sources": sources})

    def namespaced(self, namespace: str) -> ModuleSpec:
        """Return the module inside a namespace, with its process and its machine, so that two robots never share
        one."""
        process = self.process and f"{namespace}/{self.process}"
        machine = self.machine and f"{namespace}/{self.machine}"
        return self.model_copy(update={"name": f"{namespace}/{self.name}", "process": process, "machine": machine})


class Blueprint(_DescribedModel):
    """Modules and what connects them. Streams of equal topic and type are connected; a stream's topic is ``/`` + its
    name unless it is remapped. ``sources`` has channels of ``external`` and topics of ``delivery`` as keys."""

    name: str
    description: str = ""
    modules: Mapping[str, ModuleSpec] = {}
    """Modules by name, in the order in which they start."""
    external: tuple[str, ...] = ()
    """Channels that something outside publishes, such as ``"/color_image#sensor_msgs.Image"``."""
    delivery: Mapping[str, Delivery] = {}
    """Topics whose messages are to be delivered otherwise than those of their type are, on buses that can."""
    elsewhere: Mapping[str, ModuleSpec] = Field(default={}, exclude=True, repr=False)
    """The modules that other machines run, by name, if it is the part of one machine."""

    @model_validator(mode="after")
    def _names_agree(self) -> Blueprint:
        for name, spec in self.modules.items():
            if name != spec.name:
                raise ValueError(f"module {spec.name!r} is listed as {name!r}")
        return self

    def namespaced(self, namespace: str) -> Blueprint:
        """Return the blueprint with all of it inside a namespace. Raises ``UserError`` if that can't be one."""
        checked_namespace(namespace)
        moved = {f"{namespace}/{name}": spec.namespaced(namespace) for name, spec in self.modules.items()}
        channels = {channel: inside(channel, namespace) for channel in self.external}
        topics = {topic: inside(topic, namespace) for topic in self.delivery}
        sources = {{**channels, **topics}[key]: source for key, source in self.sources.items()}
        delivery = {topics[topic]: choice for topic, choice in self.delivery.items()}
        update = {"modules": moved, "external": tuple(channels.values()), "delivery": delivery, "sources": sources}
        return self.model_copy(update=update)

    def remap(self, topics: Mapping[str, str | None], *, source: str = "") -> Blueprint:
        """Return the blueprint with other topics for streams: ``{"follow.cmd_vel": "skill_vel"}``.

        None leaves an input unwired. A relative topic is relative to the module's namespace. Raises ``UserError`` for
        an unknown module.
        """
        modules = dict(self.modules)
        for address, target in topics.items():
            name, stream = self.split_address(address)
            modules[name] = modules[name].remapped(stream, target, source)
        return self.model_copy(update={"modules": modules})

    def configured(self, settings: Mapping[str, Any], *, source: str = "") -> Blueprint:
        """Return the blueprint with other config values: ``{"follow.distance_m": 1.2}``. Raises ``UserError``."""
        modules = dict(self.modules)
        for address, value in settings.items():
            name, path = self.split_address(address)
            modules[name] = modules[name].configured(path.split("."), value, source)
        return self.model_copy(update={"modules": modules})

    def without(self, *names: str) -> Blueprint:
        """Return the blueprint without some of its modules. Raises ``UserError`` for an unknown one."""
        gone = set(map(self._known, names))
        return self.model_copy(update={"modules": {n: spec for n, spec in self.modules.items() if n not in gone}})

    def replaced(self, name: str, spec: ModuleSpec) -> Blueprint:
        """Return the blueprint with another module in the place, the name and the namespace of one. Raises
        ``UserError`` for an unknown one."""
        old = self.modules[self._known(name)]
        spec = spec.model_copy(update={"name": name.rpartition("/")[2]})
        return self.with_modules([spec.namespaced(old.namespace) if old.namespace else spec])

    def retyped(self, types: Mapping[str, str], *, source: str = "") -> Blueprint:
        """Return the blueprint with other classes for modules, which keep all else. Raises ``UserError``."""
        return self.with_modules(
            self.modules[self._known(name)].changed("type", type_name, source) for name, type_name in types.items()
        )

    def in_processes(self, labels: Mapping[str, str | None], *, source: str = "") -> Blueprint:
        """Return the blueprint with other processes for modules: those of one label share one, None is one of its
        own.

        A label is below the module's namespace. Raises ``UserError`` for an unknown module, and for what can't be a
        label.
        """
        changed = []
        for name, label in labels.items():
            spec = self.modules[self._known(name)]
            changed.append(spec.changed("process", label and spec.prefix + checked_name(label), source))
        return self.with_modules(changed)

    def on_machines(self, machines: Mapping[str, Iterable[str]], *, source: str = "") -> Blueprint:
        """Return the blueprint with other machines for modules: names of modules by the machine that runs them.

        Raises ``UserError`` for an unknown module, one that two machines list, and for what can't be a machine.
        """
        placed: dict[str, str] = {}
        for machine, names in machines.items():
            for name in names:
                if placed.setdefault(self._known(name), checked_machine(machine)) != machine:
                    raise UserError(f"module {name!r} can't be on both {placed[name]!r} and {machine!r}")
        return self.with_modules(
            self.modules[name].changed("machine", machine, source) for name, machine in placed.items()
        )

    def with_modules(self, specs: Iterable[ModuleSpec]) -> Blueprint:
        """Return the blueprint with some of its modules replaced by others of the same names."""
        return self.model_copy(update={"modules": {**self.modules, **{spec.name: spec for spec in specs}}})

    def split_address(self, address: str) -> tuple[str, str]:
        """Split ``"robot1/follow.hog.scale"`` into the module and the rest. Raises ``UserError`` for an unknown
        module."""
        name, _, rest = address.partition(".") if isinstance(address, str) else ("", "", "")
        if not rest:
            raise UserError(f"{address!r} must name a module and something of it, as in 'follow.distance_m'")
        return self._known(name), rest

    def _known(self, name: str) -> str:
        if name not in self.modules:
            near = suggest(name, self.modules) or f" (modules: {', '.join(self.modules) or 'none'})"
            raise UnknownModuleError(f"blueprint {self.name!r} has no module {name!r}{near}")
        return name
