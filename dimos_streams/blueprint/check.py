"""The check of a blueprint: all that can be known to be wrong with it before anything starts."""

from __future__ import annotations

import contextlib
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

from pydantic.errors import PydanticUserError

from dimos_streams.blueprint.classes import (
    config_problems,
    failing_hook,
    hook_problems,
    missing_packages,
    module_class,
    module_config,
    module_skills,
    required_inputs,
)
from dimos_streams.blueprint.delivery_check import delivery_problems
from dimos_streams.blueprint.machines import machine_problems
from dimos_streams.blueprint.message_check import message_problems
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.blueprint.names import absolute
from dimos_streams.blueprint.wiring import Port, external_channels, ports_of, public_skills
from dimos_streams.documents.problem import BlueprintError, Problem, problems_of
from dimos_streams.errors import MessageError, UserError, suggest
from dimos_streams.messages.codec import channel_name, split_channel, type_named
from dimos_streams.module import ConfigFault, Module
from dimos_streams.skill import check_undos
from dimos_streams.streams.conversion import other_type
from dimos_streams.tool_stream.liveness.skill_fragments import described

_logger = logging.getLogger(__name__)


def check(blueprint: Blueprint) -> list[Problem]:
    """Return everything that is wrong: classes, configs, remaps, channels, wiring, names of skills. Starts nothing.

    Classes are imported. How modules are connected is only looked at when all of them could be.
    """
    problems: list[Problem] = []
    if not blueprint.modules and not blueprint.external:
        problems.append(
            Problem(f"blueprint {blueprint.name!r} has no modules: nothing would run", severity="warning")
        )
    classes: dict[str, type[Module]] = {}
    for name, spec in blueprint.modules.items():
        try:
            classes[name] = usable_class(spec)
        except UserError as error:
            problems += problems_of(error, spec.where())
            continue
        problems += _module_problems(spec, classes[name])
    problems += _external_problems(blueprint)
    problems += machine_problems(blueprint)
    if len(classes) == len(blueprint.modules):
        ports = [port for name, cls in classes.items() for port in ports_of(blueprint.modules[name], cls)]
        placed = [port for port in ports if port.topic]
        problems += _channel_problems(blueprint, placed)
        problems += delivery_problems(blueprint, placed)
        problems += _type_problems(blueprint, placed)
        problems += _publisher_problems(blueprint, placed, classes)
        problems += _unwired_problems(blueprint, ports, classes)
        problems += _skill_problems(blueprint, classes)
        problems += _skill_warnings(blueprint, classes)
        problems += _undescribed_skills(blueprint, classes)
        problems += message_problems(blueprint, ports)
    return problems


def refuse_errors(blueprint: Blueprint) -> None:
    """Raise ``BlueprintError`` with the errors that ``check`` finds; mere warnings are logged."""
    problems = check(blueprint)
    if errors := [problem for problem in problems if problem.severity == "error"]:
        raise BlueprintError(errors)
    for problem in problems:
        _logger.warning("%s", ": ".join(filter(None, (problem.where, problem.text))))


def usable_class(spec: ModuleSpec) -> type[Module]:
    """The class of a module whose declarations can be read. Raises ``BlueprintError`` for one that can't be imported,
    and for one whose streams, settings or skills are not declared as they should be."""
    cls = module_class(spec)
    try:
        cls.streams()
        cls.config_type()
        skills = module_skills(spec, cls)
        check_undos(cls.__name__, skills)  # of those that its config makes, too
        described(spec.name, [skill.info(spec.prefix) for skill in skills.values()])
    except (TypeError, NameError, PydanticUserError) as error:
        text = f"module {spec.name!r}: {spec.type} is not declared as it should be: {error}"
        # Not from it: the line that raised it is ours, and nobody is to look for the mistake there.
        raise BlueprintError([Problem(text, spec.where("type"))]) from None
    return cls


def unfed_problem(spec: ModuleSpec, port: Port, offers: Iterable[str], *, needed: bool = True) -> Problem:
    """The problem of an input that is ``needed``, or else remapped, and that nothing sends to; ``offers`` are outputs
    of its type."""
    if port.topic:
        known = ", ".join(offers)
        hint = f"outputs of that type: {known}" if known else "no module has an output of that type"
        needs = "requires its input" if needed else "has a remapped input"
        text = f"module {port.module!r} {needs} {port.stream.name!r}, but nothing publishes {port.channel!r}; {hint}"
    else:
        text = f"module {port.module!r} requires its input {port.stream.name!r}, it can't be left unwired: "
        text += f"remap {port.name} to a topic"
    return Problem(text, spec.where("remap", port.stream.name))


def _module_problems(spec: ModuleSpec, cls: type[Module]) -> Iterator[Problem]:
    try:
        config = module_config(spec, cls)
    except BlueprintError as error:
        yield from error.problems
    else:
        yield from config_problems(spec, cls, config)
        yield from hook_problems(spec, cls, config)
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


def _external_problems(blueprint: Blueprint) -> Iterator[Problem]:
    for channel in blueprint.external:
        topic, type_name = split_channel(channel)
        try:
            channel_name(absolute(topic), type_named(type_name))
        except MessageError as error:
            text = f"external {channel!r} must be of the form '/topic#package.Type': {error.why}"
        except UserError as error:
            text = f"external {channel!r}: {error}"
        else:
            continue
        yield Problem(text, blueprint.sources.get(channel, ""))


def _channel_problems(blueprint: Blueprint, ports: list[Port]) -> Iterator[Problem]:
    """Yield names that can't be topics or are too long for LCM."""
    for port in ports:
        try:
            channel_name(port.topic, port.stream.message)
        except UserError as error:
            yield Problem(f"{port.name}: {error}", _where(blueprint, port))


def _type_problems(blueprint: Blueprint, ports: list[Port]) -> Iterator[Problem]:
    """Yield topics on which not all mean the same type, so that they would never hear each other."""
    outside = [split_channel(channel) for channel in sorted(external_channels(blueprint))]
    for topic, sharing in _grouped(ports, lambda port: port.topic).items():
        users: dict[str, list[str]] = defaultdict(list)
        for port in sharing:
            users[" or ".join(cls.msg_name for cls in port.stream.messages)].append(port.name)
        from_outside = [kind for name, kind in outside if name == topic]
        for type_name in from_outside:
            users[type_name].append("outside")
        sent = {*from_outside, *(port.type_name for port in sharing if port.stream.direction == "out")}
        taken = {port: {cls.msg_name for cls in port.stream.messages} for port in sharing}
        inputs = {port: types for port, types in taken.items() if port.stream.direction == "in"}
        if _agree(sent, list(inputs.values())):
            continue
        uses = "; ".join(f"{kind} by {', '.join(names)}" for kind, names in users.items())
        text = f"topic {topic!r} has {len(users)} types: {uses}"
        deaf = next((port for port, types in inputs.items() if sent and not types & sent), None)
        if deaf is not None:
            text += f"; {other_type(topic, sorted(sent), deaf.name, deaf.stream.messages)}"
        kinds = Counter(port.stream.messages for port in sharing)
        rarest_last = sorted(sharing, key=lambda port: -kinds[port.stream.messages])
        yield Problem(text, _where_moved(blueprint, sharing, rarest_last))


def _agree(sent: Set[str], taken: Sequence[Set[str]]) -> bool:
    """Return whether each input of a topic takes all types that are sent, of which there is one if there are no
    inputs; if none is sent, whether the inputs have a type in common."""
    if not sent:
        return not taken or bool(frozenset.intersection(*map(frozenset, taken)))
    return all(sent <= types for types in taken) and (len(sent) == 1 or bool(taken))


def _publisher_problems(
    blueprint: Blueprint, ports: list[Port], classes: Mapping[str, type[Module]]
) -> Iterator[Problem]:
    """Yield channels on which several modules publish that do not say that this is fine."""
    outputs = [port for port in ports if port.stream.direction == "out"]
    for channel, sharing in _grouped(outputs, lambda port: port.channel).items():
        if len(sharing) > 1 and (sole := _sole_publisher(sharing, classes)) is not None:
            past = [port for port in sharing if port is not sole]
            text = _past(sole, past, [port for port in ports if port.module == sole.module])
            yield Problem(text, _where_moved(blueprint, sharing, past))
            continue
        careless = [p.name for p in sharing if p.stream.name not in shared_outputs(classes[p.module])]
        if len(sharing) > 1 and careless:
            text = (
                f"channel {channel!r} has {len(sharing)} publishers: {', '.join(port.name for port in sharing)}; "
                f"remap one, or list it in the class's shared_outputs ({', '.join(careless)})"
            )
            yield Problem(text, _where_moved(blueprint, sharing, sharing), "warning")


def _sole_publisher(sharing: Iterable[Port], classes: Mapping[str, type[Module]]) -> Port | None:
    """Return the output among those of a channel that is to have it for itself, or None."""
    sole = (p for p in sharing if p.stream.name in getattr(classes[p.module], "exclusive_outputs", ()))
    return next(sole, None)


def _past(sole: Port, past: Sequence[Port], ports: Iterable[Port]) -> str:
    """Return what is wrong with outputs that go past a module whose streams are ``ports``, and where they belong."""
    inputs = [p.topic for p in ports if p.stream.direction == "in" and p.topic and p.type_name == sole.type_name]
    names = " and ".join(port.name for port in past)
    text = (
        f"what {names} would publish on {sole.channel!r} goes past {sole.module!r}, which could hold none of it back"
    )
    return f"{text}; remap it to {' or '.join(inputs)}" if inputs else text


def _unwired_problems(
    blueprint: Blueprint, ports: list[Port], classes: Mapping[str, type[Module]]
) -> Iterator[Problem]:
    """Yield inputs that nothing sends to, and that are required or were remapped, which asks for something to be
    sent."""
    outputs = [port for port in ports if port.stream.direction == "out" and port.topic]
    supplied = {port.channel for port in outputs} | external_channels(blueprint)
    otherwise_typed = {split_channel(channel)[0] for channel in supplied}
    for port in ports:
        if port.stream.direction == "out" or supplied.intersection(port.channels):
            continue
        spec = blueprint.modules[port.module]
        needed = port.stream.name in required_inputs(spec, classes[port.module])
        if not needed and not (port.topic and port.stream.name in spec.remap):
            continue
        if port.topic in otherwise_typed:
            continue  # the two types of the topic are a problem of their own
        types = {cls.msg_name for cls in port.stream.messages}
        offers = (f"{p.name} ({p.topic})" for p in outputs if p.type_name in types)
        yield unfed_problem(spec, port, offers, needed=needed)


def _skill_problems(blueprint: Blueprint, classes: Mapping[str, type[Module]]) -> Iterator[Problem]:
    """Yield public names that two skills share."""
    owners: dict[str, str] = {}
    for module, cls in classes.items():
        for skill in public_skills(blueprint.modules[module], cls):
            if skill in owners:
                text = f"skill {skill!r} is offered by both {owners[skill]!r} and {module!r}; use another namespace"
                yield Problem(text, blueprint.modules[module].where())
            owners.setdefault(skill, module)


def _skill_warnings(blueprint: Blueprint, classes: Mapping[str, type[Module]]) -> Iterator[Problem]:
    """Yield the warnings of modules about configs that concern the skills of others."""
    specs = blueprint.modules
    skills = {
        name: [skill.info(specs[name].prefix) for skill in module_skills(specs[name], cls).values()]
        for name, cls in classes.items()
    }
    vary = any(getattr(cls, "skills_vary", False) for cls in classes.values())
    for name, cls in classes.items():
        spec = specs[name]
        with contextlib.suppress(UserError):  # a config that is none is a problem of its own
            config = module_config(spec, cls)
            try:
                warnings = [ConfigFault(*each) for each in cls.skill_warnings(config, name, skills)]
            except Exception as error:
                yield failing_hook(spec, "skill_warnings", error, "pairs of a path and a text")
                continue
            for path, text in warnings:
                if vary and path[-1].isdigit():
                    continue  # an entry of a list, which may mean a skill that is known only while it runs
                yield Problem(f"module {name!r}: {text}", spec.where("config", *path), "warning")


def _undescribed_skills(blueprint: Blueprint, classes: Mapping[str, type[Module]]) -> Iterator[Problem]:
    """Yield warnings of skills for everyone that nobody could know what to do with."""
    for module, cls in classes.items():
        spec = blueprint.modules[module]
        skills = module_skills(spec, cls).values()
        names = [skill.name for skill in skills if skill.policy.audience == "everyone" and not skill.description]
        if names:
            text = f"module {module!r}: {spec.type} has skills without a docstring: {', '.join(names)}"
            why = "a model knows nothing else of a skill"
            yield Problem(f"{text}; {why}", spec.where("type"), "warning")


def shared_outputs(cls: type[Module]) -> frozenset[str]:
    """The outputs that may have a channel in common with other modules', as the class declares."""
    return frozenset(getattr(cls, "shared_outputs", ()))


def _where(blueprint: Blueprint, port: Port) -> str:
    return blueprint.modules[port.module].where("remap", port.stream.name)


def _where_moved(blueprint: Blueprint, sharing: Sequence[Port], suspects: Sequence[Port]) -> str:
    """The line that brought streams together on a topic: the remap of the last of ``suspects`` that has one, or else
    the place of the last that was added. A file that is included is right by itself: who remaps it is meant."""
    moved = [port for port in suspects if f"remap.{port.stream.name}" in blueprint.modules[port.module].sources]
    return _where(blueprint, moved[-1] if moved else sharing[-1])


def _grouped(ports: Iterable[Port], key: Callable[[Port], str]) -> dict[str, list[Port]]:
    groups: dict[str, list[Port]] = defaultdict(list)
    for port in ports:
        groups[key(port)].append(port)
    return groups
