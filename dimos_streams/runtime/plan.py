"""The plan of a run: which process runs which modules, with which settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from dimos_streams.blueprint.check import refuse_errors
from dimos_streams.blueprint.classes import module_class
from dimos_streams.blueprint.model import Blueprint, ModuleSpec, Restart
from dimos_streams.blueprint.wiring import agents_of, channels_of, deliveries, wire
from dimos_streams.bus import Delivery
from dimos_streams.common.importing import LIBRARY, SKILLS, is_within
from dimos_streams.common.names import robot_of
from dimos_streams.module import RunContext, Services
from dimos_streams.runtime.options import RunOptions

ChangedSettings = Mapping[str, Mapping[str, str]]
"""The settings that an operator has changed, by module, as texts of YAML."""
_STRICTNESS: tuple[Restart, ...] = ("never", "on-failure", "always")


@dataclass(frozen=True)
class ModulePlan:
    """One module: what it is and which topics its streams have."""

    spec: ModuleSpec
    topics: Mapping[str, str]
    delivery: Mapping[str, Delivery] = field(default_factory=dict)
    """The delivery of messages by topic, for all topics for which the blueprint gives it."""
    channels: Mapping[str, str] = field(default_factory=dict)
    """See ``RunContext``."""
    agents: frozenset[str] = frozenset()
    """The agents among the modules of its blueprint."""


@dataclass(frozen=True)
class ProcessPlan:
    """One process with its modules, in the order of their start."""

    label: str
    modules: tuple[ModulePlan, ...]

    @property
    def restart(self) -> Restart:
        """The most persistent restart policy of the modules."""
        return max((plan.spec.restart for plan in self.modules), key=_STRICTNESS.index)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its modules."""
        return tuple(plan.spec.name for plan in self.modules)

    @property
    def delivery(self) -> Mapping[str, Delivery]:
        """See ``ModulePlan``."""
        return self.modules[0].delivery if self.modules else {}

    @property
    def robot(self) -> str:
        """The outermost namespace, if all of its modules are in the same one; else empty."""
        robots = set(map(robot_of, self.names))
        return robots.pop() if len(robots) == 1 else ""

    @property
    def namespaces(self) -> tuple[str, ...] | None:
        """The prefixes of its modules' names, or None if any of them has none."""
        prefixes = dict.fromkeys(plan.spec.prefix for plan in self.modules)
        return None if "" in prefixes else tuple(prefixes)

    def heard_namespaces(self, machine: str) -> tuple[str, ...] | None:
        """Return ``namespaces`` with the one in which the part of its machine speaks: of others' clocks, for
        instance."""
        if self.namespaces is None or not machine:
            return self.namespaces
        return (*self.namespaces, f"{machine}/")


def plan_run(blueprint: Blueprint) -> list[ModulePlan]:
    """Return the plans of all modules of a blueprint that is about to run, live or not. Raises ``BlueprintError``
    with all that ``check`` says is an error."""
    refuse_errors(blueprint)
    return plan_modules(blueprint)


def plan_modules(blueprint: Blueprint) -> list[ModulePlan]:
    """Return all modules with their topics, in the order of the blueprint."""
    wiring, delivery, channels = wire(blueprint), deliveries(blueprint), channels_of(blueprint)
    agents = agents_of(blueprint)
    return [
        ModulePlan(
            spec, dict(wiring[name].topics), delivery, channels if module_class(spec).sees_channels else {}, agents
        )
        for name, spec in blueprint.modules.items()
    ]


def plan_processes(modules: Iterable[ModulePlan]) -> list[ProcessPlan]:
    """Return the processes: modules of one ``process:`` label share a process, the others have one each."""
    groups: dict[str, list[ModulePlan]] = {}
    for plan in modules:
        groups.setdefault(plan.spec.process or plan.spec.name, []).append(plan)
    return [ProcessPlan(label, tuple(group)) for label, group in groups.items()]


def shared_imports(processes: Iterable[ProcessPlan]) -> list[str]:
    """Return the library's modules that several processes have, with what those import later: once is enough."""
    users: Counter[str] = Counter()
    for process in processes:
        users.update(library_imports(process.modules))
    return [name for name, count in users.items() if count > 1]


def library_imports(modules: Iterable[ModulePlan]) -> list[str]:
    """Return the modules that are the library's, with what those import later.

    Each process imports stock skills, and what is not the library's, by itself: a run goes on while they change.
    """
    classes = dict.fromkeys(module_class(plan.spec) for plan in modules)
    names = (
        (*cls.packages, cls.__module__, *cls.late_imports)
        for cls in classes
        if is_within(cls.__module__, LIBRARY) and not is_within(cls.__module__, SKILLS)
    )
    return list(dict.fromkeys(name for each in names for name in each))


def own_packages(modules: Iterable[ModulePlan]) -> list[str]:
    """Return the top-level packages of modules that are not the library's."""
    places = dict.fromkeys(plan.spec.type.partition(":")[0] for plan in modules)
    return list(dict.fromkeys(each.partition(".")[0] for each in places if not is_within(each, LIBRARY)))


def context_for(
    options: RunOptions,
    services: Services,
    plan: ModulePlan,
    robot: Iterable[str] = (),
    *,
    port_is_kept: bool = False,
    is_replaced: Callable[[], bool] = lambda: False,
) -> RunContext:
    """Return the context of a module of a run, without its namespace; ``robot`` are the modules that begin beside
    it, ``is_replaced`` returns whether another process follows its own."""
    return RunContext(
        seed=options.seed,
        bridge_url=options.bridge_url,
        token=options.token,
        run_dir=options.run_dir,
        loss_bound_s=options.loss_bound_s,
        robot=tuple(robot),
        stamped_on=options.stamped_on,
        channels=plan.channels,
        agents=plan.agents | options.agents,
        port_is_kept=port_is_kept,
        is_replaced=is_replaced,
        services=services,
    )
