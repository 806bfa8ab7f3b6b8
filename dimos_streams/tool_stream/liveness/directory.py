"""The modules that are alive and the skills that they offer, learnt from heartbeats."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence

from pydantic import TypeAdapter

from dimos_streams import clock
from dimos_streams.bus import Bus, Subscription
from dimos_streams.bus.sizes import ONE_PIECE
from dimos_streams.bus.subscription import Mark
from dimos_streams.common.allowance import Allowance
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.text import at_most, well_formed_json
from dimos_streams.errors import MessageError, UnknownSkillError
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus, ToolStreamRequest
from dimos_streams.skill import SkillInfo, public_names
from dimos_streams.tool_stream.arguments.schemas import check_schema
from dimos_streams.tool_stream.event import DESCRIBE, REQUESTS, STATUS, is_call_id, is_name
from dimos_streams.tool_stream.liveness.attention import Attention
from dimos_streams.tool_stream.liveness.heartbeat import BEGIN, ENDED, MAX_HEALTH, Head, beginning, head_of
from dimos_streams.tool_stream.liveness.instance_report import InstanceReport
from dimos_streams.tool_stream.liveness.module_entry import ModuleEntry
from dimos_streams.tool_stream.liveness.module_table import ModuleTable
from dimos_streams.tool_stream.liveness.module_view import ALIVE_S, ModuleView
from dimos_streams.tool_stream.liveness.part_state import PART, absent_machines
from dimos_streams.tool_stream.liveness.skill_fragments import SkillFragment, is_fragment
from dimos_streams.tool_stream.strangers import MARK_BYTES, Strangers

_ASK_AGAIN_S = 0.2
_ASKING = (1.0, 10.0)
"""Maximum number of requests for modules' skills, per second and at once: each module answers everybody."""
_QUEUE_BYTES = 1024 * 1024
_STRANGERS = (10_000.0, 60_000.0)
"""The cost that heartbeats of modules that are not known yet, or of other instances than the known ones, may have,
per second and at once. One costs 10, 300 with schemas, and 1 for each call and each 64 bytes of schemas; a unit is
some 3 µs. Ten robots that begin together, each with eight modules, cost 25,000."""
_MOST_STRANGERS = 250.0
"""About the maximum number of heartbeats of such modules and instances that are taken per second; the kernel drops
the rest, if it can. Eight robots that begin together, each with eight modules, send as many; with thirty robots each
module is known after a second instead of at once."""

_SKILLS: TypeAdapter[tuple[SkillInfo, ...]] = TypeAdapter(tuple[SkillInfo, ...])
_log = LimitedLog(logging.getLogger(__name__))
_seldom = LimitedLog(logging.getLogger(__name__), period_s=10.0)


class ModuleDirectory:
    """The directory of the modules whose heartbeats it hears. Use from the bus's loop only."""

    def __init__(self, bus: Bus, namespaces: Sequence[str] | None = None) -> None:
        """``namespaces`` are the prefixes of those modules that matter here, besides those in no namespace: others
        may not be heard until somebody wants to hear all. None means all namespaces."""
        self._bus = bus
        self._namespaces = namespaces
        self._listeners: list[Callable[[ModuleStatus], None]] = []
        self._table = ModuleTable()
        self._entries = self._table.entries
        self._subscription: Subscription | None = None
        self._unwatch: Callable[[], None] = lambda: None
        self._described = float("-inf")
        self._may_ask = Allowance(*_ASKING)
        self._strangers = Allowance(*_STRANGERS)
        self._flood = Strangers(_MOST_STRANGERS, self._marks)
        self._attention = Attention(self._excuse)
        self._malformed = self._ignored = 0
        self.contradictions = 0
        """Number of instances that were heard in the name of a module of which another one is alive."""

    def start(self) -> None:
        """Begin to listen, and ask everybody to introduce themselves. The bus must be open."""
        self._listen()
        self._attention.start()
        self._unwatch = self._bus.watch_tokens(self._on_token)
        self._ask_for_skills()

    def stop(self) -> None:
        """Stop listening. Stopping twice is fine."""
        self._unwatch()
        self._attention.stop()
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    def hear_all(self) -> None:
        """Hear modules of all namespaces from now on. Calling it twice is fine."""
        if self._namespaces is None:
            return
        self._namespaces = None
        if self._subscription is not None:
            self._subscription.close()
            self._listen()
            self._ask_for_skills()

    def _listen(self) -> None:
        self._subscription = self._bus.subscribe(
            STATUS, self._on_message, capacity_bytes=_QUEUE_BYTES, namespaces=self._namespaces, largest=ONE_PIECE
        )
        self._flood.watch(self._subscription)

    def _marks(self) -> Iterator[Mark]:
        """Yield the marks of the instances whose heartbeats a flood must not drown."""
        for name, instance in self._settled():
            whose = beginning(name, instance)
            yield Mark(BEGIN + len(whose) - MARK_BYTES, whose[-MARK_BYTES:])

    def instances(self) -> Iterator[str]:
        """Return the instances that have spoken for their modules for long."""
        return (instance for _, instance in self._settled())

    def _settled(self) -> Iterator[tuple[str, str]]:
        for name, entry in self._entries.items():
            if (settled := entry.instances.settled) is not None:
                yield name, settled.id

    def listen(self, listener: Callable[[ModuleStatus], None]) -> Callable[[], None]:
        """Call ``listener`` with each valid heartbeat, once the directory has taken it.

        The returned function ends that, and may be called twice.
        """
        self._listeners.append(listener)

        def end() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return end

    @property
    def malformed(self) -> int:
        """Number of invalid heartbeats, and of invalid states in them."""
        return self._malformed + self._table.malformed

    @property
    def ignored(self) -> int:
        """Number of heartbeats, and of reports in them, for which there was no room or no time."""
        return self._ignored + self._table.ignored

    @property
    def missed_at(self) -> float:
        """The time on the loop's clock at which there was last no room for heartbeats."""
        return float("-inf") if self._subscription is None else self._subscription.missed_at

    @property
    def attentive_since(self) -> float:
        """The time on the loop's clock since which this process has listened without being held up itself."""
        self._attention.now()
        return self._attention.since

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

    def is_bound(self, name: str, instance: str) -> bool:
        """Return whether an instance is the one that speaks for a module."""
        entry = self._entries.get(name)
        return entry is not None and entry.instances.is_bound(instance)

    def speaks_for(self, name: str, instance: str) -> bool:
        """Return whether an instance is the one that speaks for a module, or has done so for long."""
        entry = self._entries.get(name)
        return entry is not None and bool(instance) and entry.instances.is_known(instance)

    def can_run(self, skill: str, name: str, instance: str) -> bool:
        """Return whether an instance speaks for a module that has a skill of that public name."""
        entry = self._entries.get(name)
        return entry is not None and entry.offers(skill, instance) and self.speaks_for(name, instance)

    def departed(self, name: str, instance: str) -> bool:
        """Return whether an instance that speaks for a module is known to have ended before its silence alone says
        so."""
        return self.is_bound(name, instance) and self._entries[name].departed(self._attention.now())

    def superseded(self, name: str, instance: str) -> bool:
        """Return whether an instance of a module has fallen silent and another one has taken its place."""
        entry = self._entries.get(name)
        return entry is not None and entry.instances.superseded(instance, self._attention.now())

    def skills(self) -> list[tuple[ModuleView, SkillInfo]]:
        """Return all skills with their modules, in the order of modules' names, then of definition."""
        offering = self._views(lambda entry: bool(entry.skills))
        return [(module, info) for module in offering for info in module.skills]

    def find(self, skill: str, *, asked_by: str = "") -> tuple[ModuleView, SkillInfo]:
        """Return what ``known`` does, but raise ``UnknownSkillError`` instead of returning None."""
        found = self.known(skill, asked_by=asked_by)
        if found is None:
            offered = (info.name for entry in self._entries.values() for info in entry.skills)
            raise UnknownSkillError(skill, offered, absent_machines(self.reporting(PART)))
        return found

    def known(self, skill: str, *, asked_by: str = "") -> tuple[ModuleView, SkillInfo] | None:
        """Return the skill of that name, as a skill of the module ``asked_by`` means it (see ``public_names``), and
        its module; None if no module has it.

        A module that is alive comes first, and of several the one known for longest: a later one with the same skill
        does not get its calls.
        """
        for public in public_names(skill, asked_by):
            found = [
                (name, info) for name, entry in self._entries.items() for info in entry.skills if info.name == public
            ]
            if found:
                break
        else:
            return None
        now = self._attention.now()

        def rank(pair: tuple[str, SkillInfo]) -> tuple[bool, float, str]:
            entry = self._entries[pair[0]]
            return now - entry.heard > ALIVE_S, entry.since, pair[0]

        name, info = min(found, key=rank)
        return self._entries[name].view(name, now), info

    def _on_token(self, instance: str, is_there: bool) -> None:
        """Take note of a token. It only ever hastens what heartbeats say: an instance that is heard lives."""
        self._attention.now()
        for entry in self._entries.values():
            entry.token(instance, is_there=is_there)

    def _on_message(self, channel: str, data: bytes) -> None:
        self._attention.now()  # before who seems to be gone makes room for others
        try:
            head = head_of(data, channel)
            if not self._may_take(head):
                return
            status = decode(ModuleStatus, data, channel=channel)
            if not (is_name(status.module) and all(map(is_call_id, status.call_ids))):
                raise MessageError(channel, ModuleStatus.msg_name, "a name is too long, not printable, or no id")
            if not status.instance:
                self._take_report(status)
                return
            self._take_heartbeat(status)
        except (MessageError, ValueError) as error:  # pydantic's error is one
            self._malformed += 1
            _log.warning("skipped a heartbeat: %s", error)
            return
        for listener in tuple(self._listeners):
            listener(status)

    def _may_take(self, head: Head) -> bool:
        """Return whether there is room and time for a heartbeat: those of known modules come before all others."""
        entry = self._entries.get(head.module)
        known = entry is not None and (not head.instance or entry.instances.is_known(head.instance))
        self._flood.came(stranger=not known)
        if known:
            return True
        if entry is None and not head.instance:
            return False  # somebody's word about a module that nobody knows
        if not self._strangers.take(head.cost) or (entry is None and not self._table.make_room()):
            self._ignored += 1
            _log.warning("more modules than can be looked at; heartbeat of %r ignored", head.module)
            return False
        return True

    def _take_heartbeat(self, status: ModuleStatus) -> None:
        """Take a heartbeat. Raises ``ValueError`` for invalid skills."""
        now = clock.monotonic()
        entry = self._entries.get(status.module)
        known = None if entry is None else entry.report_of(status.instance)
        part = self._fragment_in(status, known)
        skills = None if is_fragment(status.skills_json) else self._skills_in(status, known)
        if entry is None:
            entry = self._entries[status.module] = ModuleEntry(since=now, heard=now)
        # What a module is said to be is said by one instance, as long as it lives: others can't make it flap.
        if not entry.instances.heard(status, now, self.missed_at):
            return
        for other in entry.instances.contradicting(now):
            self.contradictions += 1
            _seldom.warning(
                "module %r is alive as %s; what comes in its name from %s is not believed",
                status.module,
                entry.instances.bound,
                other,
            )
        self._table.heard(status.module, entry)
        self._table.turn_to_bound(status.module, entry)
        report = entry.current
        report.health = at_most(status.health, MAX_HEALTH)
        if status.health == ENDED:
            entry.instances.left(status.instance)
        if part is not None:
            self._table.take_fragment(report, status, part)
        elif skills is not None:
            self._table.take_skills(report, status, skills)
        elif report.skills_version != status.skills_version or self._table.has_room_again(status.module, report):
            self._ask_for_skills()
        self._table.take_state(report, status)

    def _skills_in(self, status: ModuleStatus, known: InstanceReport | None) -> tuple[SkillInfo, ...] | None:
        """Return the skills that a heartbeat describes, or None if it describes none. Raises ``ValueError``."""
        text = status.skills_json
        if not text:
            return None
        if known is not None and known.skills_text == hash(text):
            return known.skills
        skills = _SKILLS.validate_json(well_formed_json(text))
        for info in skills:
            check_schema(info.parameters)
        return skills

    def _fragment_in(self, status: ModuleStatus, known: InstanceReport | None) -> SkillFragment | None:
        """Return the part of a description in a heartbeat; None for no part or a known one. Raises ``ValueError``."""
        text = status.skills_json
        if not is_fragment(text) or (known is not None and known.knows(status.skills_version)):
            return None
        part = SkillFragment.model_validate_json(well_formed_json(text))
        for info in part.skills:
            check_schema(info.parameters)
        return part

    def _take_report(self, status: ModuleStatus) -> None:
        """Take a status without an instance, which is not the module's own: it says what is wrong with the module."""
        entry = self._entries.get(status.module)
        if entry is not None:
            entry.reported_health, entry.reported_at = at_most(status.health, MAX_HEALTH), clock.monotonic()

    def _ask_for_skills(self) -> None:
        now = clock.monotonic()
        if now - self._described >= _ASK_AGAIN_S and self._may_ask.take():
            self._described = now
            request = ToolStreamRequest(utime=clock.utime(), kind=DESCRIBE)
            self._bus.publish(REQUESTS, encode(request))
