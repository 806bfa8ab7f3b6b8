"""The check of a blueprint: all that can be known to be wrong with it before anything starts."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping

from dimos_streams.blueprint.checks.delivery_check import idle_deliveries, late_deliveries
from dimos_streams.blueprint.checks.message_check import message_problems
from dimos_streams.blueprint.checks.misspelling_check import misspelt_topics
from dimos_streams.blueprint.checks.name_check import long_names
from dimos_streams.blueprint.checks.robot_check import contradictions, ungated_motions
from dimos_streams.blueprint.checks.secret_check import secrets_for_all
from dimos_streams.blueprint.checks.skill_check import (
    colliding_skills,
    ignored_fields,
    lost_motions,
    misdescribed_parameters,
    misspelt_resources,
    skill_warnings,
    skills_that_are_no_tools,
    undescribed_skills,
)
from dimos_streams.blueprint.checks.sole_check import doubled_modules
from dimos_streams.blueprint.checks.wiring_check import (
    channel_problems,
    external_problems,
    publisher_problems,
    type_problems,
    unfed_inputs,
    unwired_inputs,
)
from dimos_streams.blueprint.classes import (
    config_problems,
    config_warnings,
    missing_packages,
    module_class,
    module_config,
    module_skills,
)
from dimos_streams.blueprint.files.draft import Draft
from dimos_streams.blueprint.machines import machine_problems
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.blueprint.wiring import ports_of
from dimos_streams.common.schemas.declaration_faults import DeclarationFaults
from dimos_streams.documents.problem import BlueprintError, Problem, errors_among, problems_of
from dimos_streams.errors import UserError, suggest
from dimos_streams.module import Module
from dimos_streams.skill import check_undos
from dimos_streams.tool_stream.liveness.skill_fragments import offered

_logger = logging.getLogger(__name__)


def check(blueprint: Blueprint) -> list[Problem]:
    """Return everything that is wrong: classes, configs, remaps, channels, wiring, names of skills. Starts nothing.

    Classes are imported. What a blueprint lacks is only looked for when all of them could be: the others might have
    it.
    """
    return check_draft(Draft(blueprint))


def check_draft(draft: Draft) -> list[Problem]:
    """Return what is wrong with the text of a draft, and all that ``check`` finds in what could be read of it."""
    blueprint, classes, problems = draft.blueprint, dict[str, type[Module]](), list(draft.problems)
    if draft.whole and not blueprint.modules and not blueprint.external:
        problems.append(
            Problem(f"blueprint {blueprint.name!r} has no modules: nothing would run", severity="warning")
        )
    for name, spec in blueprint.modules.items():
        try:
            classes[name] = usable_class(spec)
        except UserError as error:
            problems += problems_of(error, spec.where())
            continue
        problems += _module_problems(spec, classes[name])
    problems += external_problems(blueprint)
    problems += machine_problems(blueprint)
    problems += long_names(blueprint)
    known = blueprint.model_copy(update={"modules": {name: blueprint.modules[name] for name in classes}})
    problems += _joint_problems(known, classes, whole=draft.whole and len(known.modules) == len(blueprint.modules))
    return list(dict.fromkeys(problems))


def refuse_errors(blueprint: Blueprint) -> None:
    """Raise ``BlueprintError`` with the errors that ``check`` finds; mere warnings are logged."""
    problems = check(blueprint)
    if errors := errors_among(problems):
        raise BlueprintError(errors)
    for problem in problems:
        _logger.warning("%s", ": ".join(filter(None, (problem.where, problem.text))))


def _joint_problems(blueprint: Blueprint, classes: Mapping[str, type[Module]], *, whole: bool) -> Iterator[Problem]:
    """Yield what is wrong with modules side by side; of what they lack only where they are the ``whole``."""
    ports = [port for name, cls in classes.items() for port in ports_of(blueprint.modules[name], cls)]
    placed = [port for port in ports if port.topic]
    skills = {name: module_skills(blueprint.modules[name], cls) for name, cls in classes.items()}
    yield from doubled_modules(blueprint, classes)
    yield from channel_problems(blueprint, placed)
    yield from late_deliveries(blueprint, placed)
    yield from type_problems(blueprint, placed)
    yield from publisher_problems(blueprint, placed, classes)
    yield from unwired_inputs(blueprint, ports, classes)
    yield from colliding_skills(blueprint, skills)
    yield from undescribed_skills(blueprint, skills)
    yield from misdescribed_parameters(blueprint, skills)
    yield from ignored_fields(blueprint, skills)
    yield from skills_that_are_no_tools(blueprint, skills)
    yield from lost_motions(blueprint, classes, skills)
    yield from message_problems(blueprint, ports)
    yield from contradictions(blueprint, classes)
    unfed = unfed_inputs(blueprint, placed, classes)
    if not whole:
        yield from _doubts(unfed)
    else:
        yield from unfed.values()
        yield from idle_deliveries(blueprint, placed)
        yield from ungated_motions(blueprint, skills, placed)
        yield from misspelt_topics(blueprint, placed, unfed.keys())
        yield from misspelt_resources(blueprint, skills)
        yield from skill_warnings(blueprint, classes, skills)


def _doubts(unfed: Iterable[str]) -> Iterator[Problem]:
    """Yield one warning of inputs that get nothing as far as is known."""
    if names := ", ".join(unfed):
        text = f"whether anything publishes for {names} is judged once every module can be used"
        yield Problem(text, severity="warning")


def usable_class(spec: ModuleSpec) -> type[Module]:
    """The class of a module whose declarations can be read. Raises ``BlueprintError`` for one that can't be imported,
    and with all of its streams, settings and skills that are not declared as they should be."""
    cls, faults = module_class(spec), DeclarationFaults()
    for declared in (cls.streams, cls.config_type, lambda: _usable_skills(spec, cls)):
        with faults.noting():
            declared()
    if faults:
        unfit = f"module {spec.name!r}: {spec.type} is not declared as it should be"
        # Not from an error: the line that raised it is ours, and nobody is to look for the mistake there.
        raise BlueprintError(Problem(f"{unfit}: {text}", spec.where("type")) for text in faults.texts)
    return cls


def _usable_skills(spec: ModuleSpec, cls: type[Module]) -> None:
    """Raise ``TypeError`` for skills that can't be offered, those that the module's config makes among them."""
    skills = module_skills(spec, cls)
    check_undos(cls.__name__, skills)
    offered(spec.name, [skill.info(spec.prefix) for skill in skills.values()])


def _module_problems(spec: ModuleSpec, cls: type[Module]) -> Iterator[Problem]:
    try:
        config = module_config(spec, cls)
    except BlueprintError as error:
        yield from error.problems
    else:
        yield from config_problems(spec, cls, config)
        yield from config_warnings(spec, cls, config)
        yield from secrets_for_all(spec, config)
    for missing in missing_packages(cls):
        yield Problem(f"module {spec.name!r}: {missing}", spec.where("type"))
    yield from _remap_problems(spec, cls)


def _remap_problems(spec: ModuleSpec, cls: type[Module]) -> Iterator[Problem]:
    streams = cls.streams()
    for name, target in spec.remap.items():
        if name not in streams:
            known = suggest(name, streams) or f" (streams: {', '.join(streams) or 'none'})"
            text = f"module {spec.name!r} has no stream {name!r} to remap{known}"
            yield Problem(text, spec.where("remap", name))
        elif target is None and streams[name].direction == "out":
            text = f"module {spec.name!r} publishes on {name!r}: only inputs can be left unwired"
            yield Problem(text, spec.where("remap", name))
