"""Which modules are alive and what skills they offer, learnt from heartbeats."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from dimos_streams import clock
from dimos_streams.bus import Bus, Subscription
from dimos_streams.errors import MessageError, SkillArgumentError, SkillError, UnknownSkillError
from dimos_streams.limited_log import LimitedLog
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus, ToolStreamRequest
from dimos_streams.module import MAX_STATE
from dimos_streams.skill import SkillInfo
from dimos_streams.text import well_formed_json
from dimos_streams.tool_stream.event import REQUESTS, STATUS, is_call_id, is_name, json_object
from dimos_streams.tool_stream.instances import Instance, Instances, listed

HEARTBEAT_S = 0.25
ALIVE_S = 1.5
"""A module silent for longer counts as gone, or hung if somebody says so."""
_WORD_S = 1.5
"""How long somebody else's word about a module holds."""
_MAX_HEALTH = 200
_MAX_CONTRADICTION = 500
_MAX_PROBLEM = 500
_DESCRIBE_EVERY_S = 0.2
_MAX_MODULES = 1000

_SKILLS: TypeAdapter[tuple[SkillInfo, ...]] = TypeAdapter(tuple[SkillInfo, ...])
_log = LimitedLog(logging.getLogger(__name__))


@dataclass(frozen=True, slots=True)
class ModuleView:
    """A module as its heartbeats show it."""

    name: str
    instance: str
    """Another one after each start of the module."""
    pid: int
    health: str
    """``"ok"``, or what is wrong: what it says of itself, or "gone: …" or "hung: …" while it is silent."""
    age_s: float
    """Seconds since its last heartbeat."""
    skills: tuple[SkillInfo, ...]
    state: Mapping[str, Any] = field(default_factory=dict)
    """What it says of its own state, by topics; as of its last heartbeat."""
    host: str = ""
    started_utime: int = 0
    rivals: tuple[Instance, ...] = ()
    """Instances that run beside each other under its name, eldest first; empty as long as there is one."""

    @property
    def current(self) -> Instance:
        """The start of it of which the rest is told."""
        return Instance(self.started_utime, self.instance, self.pid, self.host)

    @property
    def alive(self) -> bool:
        """Whether it was heard of lately."""
        return self.age_s <= ALIVE_S


@dataclass(slots=True)
class _Entry:
    status: ModuleStatus
    heard: float
    skills_version: str = ""
    skills: tuple[SkillInfo, ...] = ()
    state_json: str = ""
    state: Mapping[str, Any] = field(default_factory=dict)
    instances: Instances = field(default_factory=Instances)
    word: str = ""
    """What somebody else said of its health, and when."""
    told: float = float("-inf")


class ModuleDirectory:
    """Listens to heartbeats. Use from the bus's loop only."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._listeners: list[Callable[[ModuleStatus], None]] = []
        self._entries: dict[str, _Entry] = {}
        self._subscription: Subscription | None = None
        self._described = float("-inf")
        self.malformed = 0

    def start(self) -> None:
        """Begin to listen, and ask everybody to introduce themselves. The bus must be open."""
        self._subscription = self._bus.subscribe(STATUS, self._on_message)
        self._ask_for_skills()

    def stop(self) -> None:
        """Stop listening. Twice is fine."""
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    def listen(self, listener: Callable[[ModuleStatus], None]) -> Callable[[], None]:
        """Call ``listener`` with each valid heartbeat, once the directory has taken it.

        What is returned ends that, and may be called twice.
        """
        self._listeners.append(listener)

        def end() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return end

    def modules(self) -> list[ModuleView]:
        """All modules heard of, by name."""
        return [self._view(name, entry) for name, entry in sorted(self._entries.items())]

    def module(self, name: str) -> ModuleView | None:
        """One module, None if it was never heard of."""
        entry = self._entries.get(name)
        return None if entry is None else self._view(name, entry)

    def superseded(self, name: str, instance: str) -> bool:
        """Whether an instance of a module has fallen silent and another one has taken its place."""
        entry = self._entries.get(name)
        return entry is not None and entry.instances.superseded(instance, clock.monotonic())

    def skills(self) -> list[tuple[ModuleView, SkillInfo]]:
        """All skills with their modules, in the order of modules' names, then of definition."""
        return [(module, info) for module in self.modules() for info in module.skills]

    def find(self, skill: str) -> tuple[ModuleView, SkillInfo]:
        """The skill of that name; a module that is alive comes first. Raises ``UnknownSkillError``."""
        found = [(module, info) for module, info in self.skills() if info.name == skill]
        if not found:
            raise UnknownSkillError(skill, (info.name for _, info in self.skills()))
        return min(found, key=lambda pair: pair[0].age_s)

    def _view(self, name: str, entry: _Entry) -> ModuleView:
        status = entry.status
        now = clock.monotonic()
        age = now - entry.heard
        if entry.told > entry.heard and now - entry.told <= _WORD_S:
            health = entry.word
        else:
            health = status.health[:_MAX_HEALTH] if age <= ALIVE_S else f"gone: silent for {age:.1f} s"
        rivals = tuple(entry.instances.side_by_side(now, ALIVE_S))
        if rivals:
            health = f"{len(rivals)} instances run under this name: {listed(rivals)}"[:_MAX_CONTRADICTION]
        return ModuleView(
            name,
            status.instance,
            status.pid,
            health,
            age,
            entry.skills,
            entry.state,
            host=status.host,
            started_utime=status.started_utime,
            rivals=rivals,
        )

    def _on_message(self, channel: str, data: bytes) -> None:
        try:
            status = decode(ModuleStatus, data, channel=channel)
            skills = _SKILLS.validate_json(well_formed_json(status.skills_json)) if status.skills_json else None
            if not (is_name(status.module) and all(map(is_call_id, status.call_ids))):
                raise MessageError(channel, ModuleStatus.msg_name, "a name is too long, not printable, or no id")
        except (MessageError, ValidationError) as error:
            self.malformed += 1
            _log.warning("skipped a heartbeat: %s", error)
            return
        if not status.instance:
            self._take_word(status)
            return
        if status.module not in self._entries and len(self._entries) >= _MAX_MODULES:
            _log.warning("more than %d modules; heartbeat of %r ignored", _MAX_MODULES, status.module)
            return
        now = clock.monotonic()
        entry = self._entries.setdefault(status.module, _Entry(status, now))
        entry.instances.heard(status, now)
        rivals = entry.instances.side_by_side(now, ALIVE_S)
        if not rivals or rivals[0].id == status.instance:  # of several the eldest counts, lest it all flaps
            self._take(entry, status, skills, now)
        for listener in tuple(self._listeners):
            listener(status)

    def _take(self, entry: _Entry, status: ModuleStatus, skills: tuple[SkillInfo, ...] | None, now: float) -> None:
        entry.status, entry.heard = status, now
        if skills is not None:
            entry.skills, entry.skills_version = skills, status.skills_version
        elif entry.skills_version != status.skills_version:
            self._ask_for_skills()
        self._take_state(entry, status.state_json)

    def _take_state(self, entry: _Entry, text: str) -> None:
        """What can't be read says nothing; the rest of the heartbeat counts all the same."""
        if text == entry.state_json:
            return
        entry.state_json, entry.state = text[: MAX_STATE + 1], {}
        try:
            if len(text) > MAX_STATE:
                raise MessageError(STATUS, ModuleStatus.msg_name, f"a state of more than {MAX_STATE} bytes")
            entry.state = json_object(text, STATUS, ModuleStatus.msg_name)
        except MessageError as error:
            self.malformed += 1
            _log.warning("skipped the state of module %r: %s", entry.status.module, error)

    def _take_word(self, status: ModuleStatus) -> None:
        """A status without an instance is not the module's own: it tells what is wrong with it."""
        entry = self._entries.get(status.module)
        if entry is not None:
            entry.word, entry.told = status.health[:_MAX_HEALTH], clock.monotonic()

    def _ask_for_skills(self) -> None:
        now = clock.monotonic()
        if now - self._described >= _DESCRIBE_EVERY_S:
            self._described = now
            request = ToolStreamRequest(utime=clock.utime(), kind="describe")
            self._bus.publish(REQUESTS, encode(request))


def check_arguments(skill: SkillInfo, arguments: Mapping[str, Any]) -> None:
    """Raises ``SkillArgumentError``, naming each bad field, if arguments do not fit a skill's schema."""
    from jsonschema import Draft202012Validator
    from referencing import Registry

    # Without a registry of our own, a reference in a schema from outside would be fetched from wherever it says.
    validator = Draft202012Validator(skill.parameters, registry=Registry())
    try:
        errors = list(validator.iter_errors(dict(arguments)))
    except Exception as error:  # the schema comes from outside, and anything may be wrong with it
        raise SkillError(f"the schema of skill {skill.name!r} can't be used: {error}"[:_MAX_PROBLEM]) from error
    problems: dict[str, str] = {}
    for found in errors:
        path = ".".join(str(part) for part in found.absolute_path)
        for name, problem in _explain(found, path, skill.parameters):
            problems.setdefault(name, problem)
    if problems:
        raise SkillArgumentError(skill.name, problems)


def _explain(error: Any, path: str, schema: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Fields and what is wrong with them, where the validator only names the object around them."""
    prefix = f"{path}." if path else ""
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        return [(f"{prefix}{name}", "is missing") for name in missing]
    if error.validator == "additionalProperties" and isinstance(error.instance, Mapping):
        known = list(error.schema.get("properties", {}))
        valid = ", ".join(known) or "none"
        unknown = [name for name in error.instance if name not in known]
        return [(f"{prefix}{name}", f"is not an argument of this skill (valid: {valid})") for name in unknown]
    message = error.message if len(error.message) <= 300 else f"{error.message[:297]}..."
    return [(path or "arguments", message)]
