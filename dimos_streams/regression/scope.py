"""Sorts a log into the inputs of the modules under test, their outputs, and what is none of their business."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dimos_streams.blueprint.classes import module_class
from dimos_streams.blueprint.kinds import is_replayable
from dimos_streams.blueprint.model import Blueprint
from dimos_streams.blueprint.wiring import Port, ports_of
from dimos_streams.common.json.writing import json_text
from dimos_streams.errors import MessageError, UserError, suggest
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus, SkillCall, SkillCancel
from dimos_streams.recording.format import LogEvent
from dimos_streams.runtime.plan import ModulePlan, plan_modules
from dimos_streams.skill import skills_of
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.protocol.channels import CALLS, CANCELS, EVENTS, REQUESTS, STATUS
from dimos_streams.tool_stream.wire.unpacking import unpack_event

Role = Literal["input", "output", "other"]
MARGIN_US = 100_000
"""A module may send something a little after the close of its call has been recorded."""


@dataclass(slots=True)
class Scope:
    """The modules under test, and which channels are theirs. Made by ``scope_of``."""

    plans: Sequence[ModulePlan]
    names: frozenset[str]
    inputs: frozenset[str]
    """Channels that they read and don't write."""
    required: frozenset[str]
    """The inputs without which a module can't work."""
    unrecorded: frozenset[str]
    """The other inputs whose channels could not get into the log, as pictures that were left out of it."""
    outputs: frozenset[str]
    """Channels that they write and that are compared."""
    left_out: frozenset[str]
    """Channels that they write and that were not recorded."""
    sharers: dict[str, frozenset[str]]
    """Outputs that other modules write too, with these modules."""
    writers: dict[str, frozenset[str]]
    """Outputs, with those of the modules under test that write them."""
    calls: set[str] = field(default_factory=set)
    """Ids of the calls that the modules were asked to run."""
    _never_begun: set[str] = field(default_factory=set)
    """Ids of the calls that a bridge has refused or given up in the log before their module had begun them."""
    _busy: dict[str, set[str]] = field(default_factory=dict)
    _free_since: dict[str, int] = field(default_factory=dict)
    _quiet: frozenset[str] = frozenset()

    def may_be_output(self, channel: str) -> bool:
        """Return whether there may be outputs on a channel."""
        return channel in self.outputs or channel in (EVENTS, CALLS)

    def withheld(self, recorded: Callable[[str], bool]) -> frozenset[str]:
        """Return the inputs that can't have got into the log; ``recorded`` is that of ``scope_of``."""
        return self.unrecorded | {channel for channel in self.required if not recorded(channel)}

    def unsupplied(self) -> Iterator[Port]:
        """Yield the required inputs that have a topic, to which nothing in the blueprint sends."""
        for plan in self.plans:
            for port in ports_of(plan.spec, module_class(plan.spec)):
                required = port.stream.direction == "in" and port.stream.required
                if required and port.topic and port.stream.name not in plan.topics:
                    yield port

    def role(self, channel: str, data: bytes) -> Role:
        """The role of a message, whoever published it."""
        if channel in self.outputs:
            return "output"
        if channel in self.inputs or channel == REQUESTS:
            return "input"
        try:
            return self._role_of_talk(channel, data)
        except MessageError:  # damaged; the modules would skip it too
            return "other"

    def is_of_bridge(self, said: ToolEvent) -> bool:
        """Return whether an event is of a call that a bridge has refused or given up before its module had begun
        it: the bridge says both events of such a call."""
        return said.call_id in self._never_begun or (said.type == "open" and "refused" in said.data)

    def watch(self, event: LogEvent) -> None:
        """Learn from the log who is busy with calls, and which were never begun. Call this with every event on
        ``EVENTS``."""
        try:
            said = unpack_event(event.data)
        except MessageError:  # counted nowhere: ``role`` leaves it out
            return
        if self.is_of_bridge(said):
            self._never_begun.add(said.call_id)
            return
        calls = self._busy.setdefault(said.module, set())
        if said.type == "close":
            calls.discard(said.call_id)
            self._free_since[said.module] = event.utime
        else:
            calls.add(said.call_id)

    def may_be_of_others(self, channel: str, utime: int) -> bool:
        """Return whether a recorded output may have come from a module that is not under test: one that shares the
        channel and either has no skills or was busy with a call."""
        return any(self._may_have_sent(module, utime) for module in self.sharers.get(channel, ()))

    def _may_have_sent(self, module: str, utime: int) -> bool:
        if module in self._quiet:
            busy = bool(self._busy.get(module))
            return busy or utime <= self._free_since.get(module, 0) + MARGIN_US
        return True

    def _role_of_talk(self, channel: str, data: bytes) -> Role:
        if channel == EVENTS:
            said = unpack_event(data)
            return "output" if said.module in self.names and not self.is_of_bridge(said) else "input"
        if channel == STATUS:
            return "other" if decode(ModuleStatus, data, channel).module in self.names else "input"
        if channel == CALLS:
            call = decode(SkillCall, data, channel)
            if call.module in self.names:
                return "input"
            return "output" if not call.module and call.parent in self.calls else "other"
        if channel == CANCELS:
            return "input" if decode(SkillCancel, data, channel).call_id in self.calls else "other"
        return "other"


def scope_of(blueprint: Blueprint, modules: Sequence[str], recorded: Callable[[str], bool]) -> Scope:
    """Return the scope of modules. ``recorded`` tests whether a channel could get into the log; others are not
    compared.

    Raises ``UserError`` for modules that are unknown or can't be tested alone.
    """
    _check_modules(blueprint, modules)
    chosen, planned = frozenset(modules), plan_modules(blueprint)
    writers = _writers(planned)
    plans = [plan for plan in planned if plan.spec.name in chosen]
    read, required, unrecorded = _read_channels(plans, recorded)
    written = {channel for channel, names in writers.items() if names & chosen}
    outputs = frozenset(channel for channel in written if recorded(channel))
    sharers = {channel: frozenset(writers[channel] - chosen) for channel in written if writers[channel] - chosen}
    for channel in sorted(read & sharers.keys()):
        others = ", ".join(sorted(sharers[channel]))
        raise UserError(f"{channel} is read by a module under test, and written by others too: test {others} as well")
    return Scope(
        plans=plans,
        names=chosen,
        inputs=frozenset(read - written),
        required=frozenset(required - written),
        unrecorded=frozenset(unrecorded - written),
        left_out=frozenset(written - outputs),
        outputs=outputs,
        sharers=sharers,
        writers={channel: frozenset(writers[channel] & chosen) for channel in outputs},
        _quiet=frozenset(plan.spec.name for plan in planned if _speaks_only_in_calls(blueprint, plan.spec.name)),
    )


def _check_modules(blueprint: Blueprint, modules: Sequence[str]) -> None:
    if not modules:
        raise UserError(f"which modules are to be tested? {blueprint.name!r} has {', '.join(blueprint.modules)}")
    for name in modules:
        if name not in blueprint.modules:
            near = suggest(name, blueprint.modules) or f" (modules: {', '.join(blueprint.modules)})"
            raise UserError(f"blueprint {blueprint.name!r} has no module {name!r}{near}")
        _check(blueprint, name)


def _writers(plans: Iterable[ModulePlan]) -> dict[str, set[str]]:
    """The names of the modules that write on each channel."""
    writers: dict[str, set[str]] = {}
    for plan in plans:
        for port in ports_of(plan.spec, module_class(plan.spec)):
            if port.stream.direction == "out" and port.stream.name in plan.topics:
                writers.setdefault(port.channel, set()).add(plan.spec.name)
    return writers


def call_of(opened: ToolEvent) -> bytes:
    """The call that an ``open`` event begins, for logs without it."""
    message = SkillCall(
        utime=opened.utime,
        call_id=opened.call_id,
        module=opened.module,
        skill=opened.skill,
        caller=opened.caller,
        parent=str(opened.data.get("parent") or ""),
        arguments_json=json_text(opened.data.get("arguments", {})),
    )
    return encode(message)


def _check(blueprint: Blueprint, name: str) -> None:
    if not is_replayable(blueprint.modules[name]):
        raise UserError(f"module {name!r} can't be replayed alone: what it works with does not travel over the bus")


def _read_channels(
    plans: Sequence[ModulePlan], recorded: Callable[[str], bool]
) -> tuple[set[str], set[str], set[str]]:
    """Return the channels that modules read, those that they require, and the others that could not be recorded; of
    several types of a topic the recorded one."""
    read: set[str] = set()
    required: set[str] = set()
    unrecorded: set[str] = set()
    for plan in plans:
        for port in ports_of(plan.spec, module_class(plan.spec)):
            if port.stream.direction == "in" and port.stream.name in plan.topics:
                read.update(port.channels)
                if port.stream.required:
                    required.add(next(filter(recorded, port.channels), port.channel))
                elif not any(map(recorded, port.channels)):
                    unrecorded.add(port.channel)
    return read, required, unrecorded


def _speaks_only_in_calls(blueprint: Blueprint, name: str) -> bool:
    """Return whether a module has skills; then what it writes on shared channels comes from them."""
    return bool(skills_of(module_class(blueprint.modules[name])))
