"""Which process runs which modules, and with which settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dimos_streams.blueprint.model import Blueprint, ModuleSpec, Restart
from dimos_streams.blueprint.wiring import wire
from dimos_streams.module import RunContext, Services
from dimos_streams.runtime.options import RunOptions

_STRICTNESS: tuple[Restart, ...] = ("never", "on-failure", "always")


@dataclass(frozen=True)
class ModulePlan:
    """One module: what it is and which topics its streams have."""

    spec: ModuleSpec
    topics: Mapping[str, str]


@dataclass(frozen=True)
class ProcessPlan:
    """One process with its modules, in the order of their start."""

    label: str
    modules: tuple[ModulePlan, ...]

    @property
    def restart(self) -> Restart:
        """The most persistent policy of the modules."""
        return max((plan.spec.restart for plan in self.modules), key=_STRICTNESS.index)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its modules."""
        return tuple(plan.spec.name for plan in self.modules)


def plan_modules(blueprint: Blueprint) -> list[ModulePlan]:
    """All modules with their topics, in the order of the blueprint."""
    wiring = wire(blueprint)
    return [ModulePlan(spec, dict(wiring[name].topics)) for name, spec in blueprint.modules.items()]


def plan_processes(modules: Iterable[ModulePlan]) -> list[ProcessPlan]:
    """Modules of one ``process:`` label share a process, the others have one each."""
    groups: dict[str, list[ModulePlan]] = {}
    for plan in modules:
        groups.setdefault(plan.spec.process or plan.spec.name, []).append(plan)
    return [ProcessPlan(label, tuple(group)) for label, group in groups.items()]


def context_for(options: RunOptions, services: Services) -> RunContext:
    """The context of the modules of this run, but for their namespace."""
    return RunContext(
        seed=options.seed,
        bridge_url=options.bridge_url,
        token=options.token,
        run_dir=options.run_dir,
        loss_bound_s=options.loss_bound_s,
        services=services,
    )
