"""The preparation of a worker for a run that goes on: it imports its code as it is on disk now, and checks it.

A successor does this while its predecessor still runs, so that broken code keeps the old process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dimos_streams.blueprint.check import usable_class
from dimos_streams.blueprint.checks.message_check import stale_problems
from dimos_streams.blueprint.checks.wiring_check import unfed_problem
from dimos_streams.blueprint.classes import config_problems, module_config, required_inputs
from dimos_streams.blueprint.model import ModuleSpec
from dimos_streams.blueprint.wiring import output_channels, ports_of, topics_of
from dimos_streams.documents.problem import BlueprintError, Problem, errors_among
from dimos_streams.errors import SettingsError
from dimos_streams.live_settings import with_assignments
from dimos_streams.messages.codec import split_channel
from dimos_streams.module import Module
from dimos_streams.runtime.plan import ChangedSettings, ModulePlan, ProcessPlan


@dataclass(frozen=True, slots=True)
class Prepared:
    """The plan of a process by its code on disk."""

    plan: ProcessPlan
    outputs: frozenset[str]
    """The channels that its modules publish on."""


def prepare(plan: ProcessPlan, supplied: frozenset[str], live: ChangedSettings, *, ordered: bool = False) -> Prepared:
    """Import the modules of a process, check their settings and skills, and wire them anew.

    ``supplied`` are the channels that anything else sends to. ``ordered`` is for a successor of what runs, which need
    not be replaced: message classes that their definitions do not fit are a fault then. Raises ``BlueprintError``
    with the same texts as ``check``, also for an input that is required and that nothing sends to.
    """
    classes = [(each.spec, usable_class(each.spec)) for each in plan.modules]
    outputs = frozenset[str]().union(*(output_channels(spec, cls) for spec, cls in classes))
    problems = [problem for spec, cls in classes for problem in _problems(spec, cls, live.get(spec.name, {}))]
    problems += [problem for spec, cls in classes for problem in _unfed(spec, cls, supplied | outputs)]
    if ordered:
        used = {message for spec, cls in classes for port in ports_of(spec, cls) for message in port.stream.messages}
        problems += errors_among(stale_problems(used))
    if problems:
        raise BlueprintError(problems)
    modules = tuple(
        ModulePlan(spec, topics_of(spec, cls, supplied | outputs), plan.delivery, each.channels, each.agents)
        for each, (spec, cls) in zip(plan.modules, classes, strict=True)
    )
    return Prepared(ProcessPlan(plan.label, modules), outputs)


def _problems(spec: ModuleSpec, cls: type[Module], live: Mapping[str, str]) -> list[Problem]:
    """Return the faults of a module's settings. Raises ``BlueprintError`` for those that are wrong by themselves."""
    config = module_config(spec, cls)
    try:
        config = with_assignments(config, live)
    except SettingsError as error:
        text = f"module {spec.name!r}: what was `set` while it ran is not possible any more: {error}"
        return [Problem(f"{text} (`set` the blueprint's value first)")]
    return config_problems(spec, cls, config, names_paths=True)


def _unfed(spec: ModuleSpec, cls: type[Module], supplied: frozenset[str]) -> Iterator[Problem]:
    """Yield a problem for each input without which the module's host would not start it."""
    topics, required = topics_of(spec, cls, supplied), required_inputs(spec, cls)
    for port in ports_of(spec, cls):
        if port.stream.name in required and port.stream.name not in topics:
            types = {message.msg_name for message in port.stream.messages}
            offers = (topic for topic, kind in map(split_channel, sorted(supplied)) if kind in types)
            yield unfed_problem(spec, port, offers)
