"""The check of how modules are connected: channels, types of topics, publishers, inputs that nothing sends to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

from dimos_streams.blueprint.classes import required_inputs
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.blueprint.names import absolute
from dimos_streams.blueprint.wiring import Port, external_channels
from dimos_streams.documents.problem import Problem
from dimos_streams.errors import MessageError, UserError
from dimos_streams.messages.codec import channel_name, split_channel, type_named
from dimos_streams.module import Module
from dimos_streams.streams.conversion import other_type


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


def channel_problems(blueprint: Blueprint, ports: list[Port]) -> Iterator[Problem]:
    """Yield names that can't be topics or are too long for LCM."""
    for port in ports:
        try:
            channel_name(port.topic, port.stream.message)
        except UserError as error:
            yield Problem(f"{port.name}: {error}", port.where(blueprint))


def external_problems(blueprint: Blueprint) -> Iterator[Problem]:
    """Yield what is said to come from outside and can't be a channel."""
    for channel in blueprint.external:
        if fault := _external_fault(channel):
            yield Problem(fault, blueprint.sources.get(channel, ""))


def _external_fault(channel: str) -> str:
    """Return what is wrong with an external channel; empty if it is one."""
    topic, type_name = split_channel(channel)
    try:
        channel_name(absolute(topic), type_named(type_name))
    except MessageError as error:
        return f"external {channel!r} must be of the form '/topic#package.Type': {error.why}"
    except UserError as error:
        return f"external {channel!r}: {error}"
    return ""


def type_problems(blueprint: Blueprint, ports: list[Port]) -> Iterator[Problem]:
    """Yield topics on which not all mean the same type, so that they would never hear each other."""
    external = sorted(external_channels(blueprint))
    outside = [split_channel(channel) for channel in external if not _external_fault(channel)]
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


def publisher_problems(
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


def unfed_inputs(blueprint: Blueprint, ports: list[Port], classes: Mapping[str, type[Module]]) -> dict[str, Problem]:
    """The problems of inputs that nothing sends to, by the names of these: those that are required, and those that
    were remapped, which asks for something to be sent."""
    outputs = [port for port in ports if port.stream.direction == "out"]
    supplied = {port.channel for port in outputs} | external_channels(blueprint)
    otherwise_typed = {split_channel(channel)[0] for channel in supplied}
    found: dict[str, Problem] = {}
    for port in ports:
        # Two types of a topic are a problem of their own.
        if port.stream.direction == "out" or port.topic in otherwise_typed:
            continue
        spec = blueprint.modules[port.module]
        needed = port.stream.name in required_inputs(spec, classes[port.module])
        if needed or port.stream.name in spec.remap:
            types = {cls.msg_name for cls in port.stream.messages}
            offers = (f"{p.name} ({p.topic})" for p in outputs if p.type_name in types)
            found[port.name] = unfed_problem(spec, port, offers, needed=needed)
    return found


def unwired_inputs(blueprint: Blueprint, ports: list[Port], classes: Mapping[str, type[Module]]) -> Iterator[Problem]:
    """Yield inputs that are left unwired although they are required."""
    for port in ports:
        spec = blueprint.modules[port.module]
        if not port.topic and port.stream.name in required_inputs(spec, classes[port.module]):
            yield unfed_problem(spec, port, ())


def shared_outputs(cls: type[Module]) -> frozenset[str]:
    """The outputs that may have a channel in common with other modules', as the class declares."""
    return frozenset(getattr(cls, "shared_outputs", ()))


def _where_moved(blueprint: Blueprint, sharing: Sequence[Port], suspects: Sequence[Port]) -> str:
    """The line that brought streams together on a topic: the remap of the last of ``suspects`` that has one, or else
    the place of the last that was added. A file that is included is right by itself: who remaps it is meant."""
    moved = [port for port in suspects if f"remap.{port.stream.name}" in blueprint.modules[port.module].sources]
    return (moved[-1] if moved else sharing[-1]).where(blueprint)


def _grouped(ports: Iterable[Port], key: Callable[[Port], str]) -> dict[str, list[Port]]:
    groups: dict[str, list[Port]] = defaultdict(list)
    for port in ports:
        groups[key(port)].append(port)
    return groups
