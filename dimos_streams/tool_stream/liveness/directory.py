"""The modules that are alive and the skills that they offer, learnt from heartbeats."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence

from dimos_streams import clock
from dimos_streams.bus import Bus
from dimos_streams.common.listeners import Listeners
from dimos_streams.common.names import skill_meant
from dimos_streams.common.tasks import ends_within
from dimos_streams.errors import UnknownSkillError
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.skill import SkillInfo, public_names
from dimos_streams.tool_stream.liveness.attention import Attention
from dimos_streams.tool_stream.liveness.called_skills import CalledSkill, called_skills, precedence
from dimos_streams.tool_stream.liveness.heartbeat import HEARTBEAT_S
from dimos_streams.tool_stream.liveness.heartbeat_intake import HeartbeatIntake
from dimos_streams.tool_stream.liveness.instances import Instance
from dimos_streams.tool_stream.liveness.module_entry import ModuleEntry
from dimos_streams.tool_stream.liveness.module_table import ModuleTable
from dimos_streams.tool_stream.liveness.module_view import ModuleView
from dimos_streams.tool_stream.liveness.part_state import PART, absent_machines

_ACQUAINTED_S = 2 * HEARTBEAT_S
"""The time of listening, in seconds, in which each module that runs is heard."""


class ModuleDirectory:
    """The directory of the modules whose heartbeats it hears. Use from the bus's loop only."""

    def __init__(self, bus: Bus, namespaces: Sequence[str] | None = None) -> None:
        """``namespaces`` are the prefixes of those modules that matter here, besides those in no namespace: others
        may not be heard until somebody wants to hear all. None means all namespaces."""
        self._bus = bus
        self._listeners: Listeners[[ModuleStatus]] = Listeners()
        self._unwatch: Callable[[], None] = lambda: None
        self._attention = Attention(self._excuse)
        self._acquainted_at = float("-inf")
        table = ModuleTable()
        self._entries = table.entries
        self._intake = HeartbeatIntake(bus, table, self._attention, namespaces, self._listeners.notify)

    def start(self) -> None:
        """Begin to listen, and ask everybody to introduce themselves. The bus must be open."""
        self._intake.start()
        self._attention.start()
        self._acquainted_at = clock.monotonic() + _ACQUAINTED_S
        self._unwatch = self._bus.watch_tokens(self._on_token)
        self._intake.ask_for_skills()

    def stop(self) -> None:
        """Stop listening. Stopping twice is fine."""
        self._unwatch()
        self._attention.stop()
        self._intake.stop()

    def hear_all(self) -> None:
        """Hear modules of all namespaces from now on. Calling it twice is fine."""
        self._intake.hear_all()

    def instances(self) -> Iterator[str]:
        """Return the instances that have spoken for their modules for long."""
        return (instance for _, instance in self._intake.established())

    def listen(self, listener: Callable[[ModuleStatus], None]) -> Callable[[], None]:
        """Call ``listener`` with each valid heartbeat, once the directory has taken it.

        The returned function ends that, and may be called twice.
        """
        return self._listeners.add(listener)

    @property
    def malformed(self) -> int:
        """Number of invalid heartbeats, and of invalid states in them."""
        return self._intake.malformed

    @property
    def ignored(self) -> int:
        """Number of heartbeats, and of reports in them, for which there was no room or no time."""
        return self._intake.ignored

    @property
    def contradictions(self) -> int:
        """Number of instances that were heard in the name of a module of which another one is alive."""
        return self._intake.contradictions

    @property
    def missed_at(self) -> float:
        """The time on the loop's clock at which there was last no room for heartbeats."""
        return self._intake.missed_at

    @property
    def attentive_since(self) -> float:
        """The time on the loop's clock since which this process has listened without being held up itself."""
        self._attention.now()
        return self._attention.since

    @property
    def catching_up_s(self) -> float:
        """The time, in seconds, until all has been read that came while this process, or its machine, stood still."""
        return self._attention.catching_up_s

    @property
    def reads_outdated(self) -> bool:
        """True while this process may read what was sent so long ago that it has been given up since: it, or its
        machine, stood still. Whoever still wants something asks for it again."""
        return self.outdated_s > 0

    @property
    def outdated_s(self) -> float:
        """The time, in seconds, for which ``reads_outdated`` stays true."""
        return self._attention.outdated_s

    def _excuse(self, break_s: float) -> None:
        for entry in self._entries.values():
            entry.excuse(break_s)

    @property
    def count(self) -> int:
        """The number of modules that were heard of."""
        return len(self._entries)

    def modules(self) -> list[ModuleView]:
        """Return all modules heard of, by name. There may be a thousand, made up by somebody: don't use it often."""
        return self._views(lambda entry: True)

    def reporting(self, key: str) -> list[ModuleView]:
        """Return the modules whose state has a topic, by name."""
        quoted = json.dumps(key)
        return self._views(lambda entry: quoted in entry.current.state_json and key in entry.current.state())

    def unwell(self) -> dict[str, str]:
        """Return the health of each module that is not ``"ok"``, by name."""
        now = self._attention.now()
        healths = {name: entry.health_at(now) for name, entry in sorted(self._entries.items())}
        return {name: health for name, health in healths.items() if health != "ok"}

    def _views(self, wanted: Callable[[ModuleEntry], bool]) -> list[ModuleView]:
        now = self._attention.now()
        return [entry.view(name, now) for name, entry in sorted(self._entries.items()) if wanted(entry)]

    def module(self, name: str) -> ModuleView | None:
        """Return one module, or None if it was never heard of."""
        entry = self._entries.get(name)
        return None if entry is None else entry.view(name, self._attention.now())

    def rivals(self, name: str) -> tuple[Instance, ...]:
        """Return the instances that run beside each other under a module's name, see ``ModuleEntry``."""
        entry = self._entries.get(name)
        return () if entry is None else entry.rivals(self._attention.now())

    def is_introduced(self, name: str) -> bool:
        """Return whether a module's skills are known."""
        entry = self._entries.get(name)
        return entry is not None and entry.current.skills_version is not None

    def is_active(self, name: str, instance: str) -> bool:
        """Return whether an instance is the one that speaks for a module."""
        entry = self._entries.get(name)
        return entry is not None and entry.instances.is_active(instance)

    def speaks_for(self, name: str, instance: str) -> bool:
        """Return whether an instance is the one that speaks for a module, or has done so for long."""
        entry = self._entries.get(name)
        return entry is not None and entry.instances.is_known(instance)

    def can_run(self, skill: str, name: str, instance: str) -> bool:
        """Return whether an instance speaks for a module that has a skill of that public name."""
        entry = self._entries.get(name)
        return entry is not None and entry.offers(skill, instance) and self.speaks_for(name, instance)

    def departed(self, name: str, instance: str) -> bool:
        """Return whether an instance that speaks for a module is known to have ended before its silence alone says
        so."""
        return self.is_active(name, instance) and self._entries[name].departed(self._attention.now())

    def how_ended(self, name: str, instance: str) -> str:
        """Return how the process of a module's instance has ended, as in "ended by SIGKILL", if its supervisor has
        said it and the instance is not heard; else an empty text. Only words: anybody may say it."""
        entry = self._entries.get(name)
        return "" if entry is None else entry.how_ended(instance)

    def superseded(self, name: str, instance: str) -> bool:
        """Return whether an instance of a module has fallen silent and another one has taken its place."""
        entry = self._entries.get(name)
        return entry is not None and entry.instances.superseded(instance, self._attention.now())

    def begun_since(self, name: str, utime: int, *, besides: str) -> bool:
        """Return whether another instance of a module than ``besides`` was heard that was started after a time."""
        entry = self._entries.get(name)
        return entry is not None and entry.instances.begun_since(utime, besides=besides)

    def skills(self) -> list[tuple[ModuleView, SkillInfo]]:
        """Return all skills with their modules, in the order of modules' names, then of definition: of one name all
        that offer it."""
        return [(module, info) for module in self._offering() for info in module.skills]

    def called(self) -> list[CalledSkill]:
        """Return one skill of each public name, the one that ``known`` returns, in the order of ``skills``."""
        return called_skills(self._offering())

    def _offering(self) -> list[ModuleView]:
        return self._views(lambda entry: bool(entry.skills))

    def find(self, skill: str, *, asked_by: str = "") -> tuple[ModuleView, SkillInfo]:
        """Return what ``known`` does, but raise ``UnknownSkillError`` instead of returning None."""
        return self._found(skill, self.known(skill, asked_by=asked_by))

    def find_named(self, skill: str) -> tuple[ModuleView, SkillInfo]:
        """Return what ``named`` does, but raise ``UnknownSkillError`` instead of returning None."""
        return self._found(skill, self.named(skill))

    def _found(self, skill: str, found: tuple[ModuleView, SkillInfo] | None) -> tuple[ModuleView, SkillInfo]:
        if found is None:
            offered = (
                info.name for entry in self._entries.values() for info in entry.skills if info.audience != "bridge"
            )
            raise UnknownSkillError(skill, offered, absent_machines(self.reporting(PART)))
        return found

    @property
    def is_acquainted(self) -> bool:
        """True once this process has listened for so long that it has heard of each module that runs."""
        return clock.monotonic() >= self._acquainted_at

    async def meet(self, is_known: Callable[[], bool]) -> None:
        """Wait until somebody is known, or until this process has listened without a break for so long that it has
        heard of each module that runs."""
        heard = asyncio.Event()
        end = self.listen(lambda status: heard.set())
        try:
            while not is_known():
                heard.clear()
                if not await ends_within(self.attentive_since + _ACQUAINTED_S - clock.monotonic(), heard.wait()):
                    return
        finally:
            end()

    def known(self, skill: str, *, asked_by: str = "") -> tuple[ModuleView, SkillInfo] | None:
        """Return the skill that a skill of the module ``asked_by`` means by a name (see ``public_names`` and
        ``skill_meant``), and its module; None if no module has it."""
        offered = {info.name for entry in self._entries.values() for info in entry.skills}
        meant = (skill_meant(public, offered) for public in public_names(skill, asked_by))
        own = next(filter(None, meant), None)
        return None if own is None else self.named(own)

    def named(self, skill: str) -> tuple[ModuleView, SkillInfo] | None:
        """Return the skill whose own public name it is, as a call has it that has been admitted, and its module; None
        if no module has it. Which one it is of several, ``precedence`` says."""
        now = self._attention.now()
        found = [
            (entry.view(name, now), info)
            for name, entry in self._entries.items()
            for info in entry.skills
            if info.name == skill
        ]
        return min(found, key=lambda pair: precedence(pair[0]), default=None)

    def _on_token(self, instance: str, is_there: bool) -> None:
        """Take note of a token. It only ever hastens what heartbeats say: an instance that is heard lives."""
        self._attention.now()
        for entry in self._entries.values():
            entry.token(instance, is_there=is_there)
