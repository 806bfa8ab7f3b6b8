"""The intake of heartbeats: what they say is entered into the table of modules, as far as it is believed and there is
room and time for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from dimos_streams import clock
from dimos_streams.bus import Bus, Subscription
from dimos_streams.bus.sizes import ONE_PIECE
from dimos_streams.bus.subscription import Mark
from dimos_streams.common.allowance import Allowance
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.readable.shortening import at_most
from dimos_streams.errors import BusError, MessageError
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import ModuleStatus, ToolStreamRequest
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.flood_limit import MARK_BYTES, FloodLimit
from dimos_streams.tool_stream.liveness.attention import Attention
from dimos_streams.tool_stream.liveness.heartbeat import BEGIN, ENDED, MAX_HEALTH, Head, beginning
from dimos_streams.tool_stream.liveness.heartbeat_reader import HeartbeatReader
from dimos_streams.tool_stream.liveness.instance_report import InstanceReport
from dimos_streams.tool_stream.liveness.module_entry import ModuleEntry
from dimos_streams.tool_stream.liveness.module_table import ModuleTable
from dimos_streams.tool_stream.liveness.skill_fragments import SkillFragment, fragment_in, is_fragment, skills_in
from dimos_streams.tool_stream.protocol.channels import DESCRIBE, REQUESTS, STATUS

_SHOWN = 60
"""Maximum length of what may be no name in an error, in characters."""
_ASK_AGAIN_S = 0.2
_ASKING = (1.0, 10.0)
"""Maximum number of requests for modules' skills, per second and at once: each module answers everybody."""
_QUEUE_BYTES = 1024 * 1024
_UNKNOWN_COST = (10_000.0, 60_000.0)
"""The cost that heartbeats of modules that are not known yet, or of other instances than the known ones, may have,
per second and at once. One costs 10, 300 with schemas, and 1 for each call and each 64 bytes of schemas; a unit is
some 3 µs. Ten robots that begin together, each with eight modules, cost 25,000."""
_MOST_UNKNOWN = 250.0
"""About the maximum number of heartbeats of such modules and instances that are taken per second; the kernel drops
the rest, if it can. Eight robots that begin together, each with eight modules, send as many; with thirty robots each
module is known after a second instead of at once."""

_log = LimitedLog(logging.getLogger(__name__))
_seldom = LimitedLog(logging.getLogger(__name__), period_s=10.0)


class HeartbeatIntake:
    """Takes heartbeats off the bus. Use from the bus's loop only."""

    def __init__(
        self,
        bus: Bus,
        table: ModuleTable,
        attention: Attention,
        namespaces: Sequence[str] | None,
        taken: Callable[[ModuleStatus], None],
    ) -> None:
        """``namespaces`` are the prefixes of those modules that are to be heard, None for all; ``taken`` is called
        with each valid heartbeat, once the table has it."""
        self._bus = bus
        self._table = table
        self._entries = table.entries
        self._attention = attention
        self._namespaces = namespaces
        self._taken = taken
        self._reader = HeartbeatReader()
        self._subscription: Subscription | None = None
        self._described = float("-inf")
        self._may_ask = Allowance(*_ASKING)
        self._unknown = Allowance(*_UNKNOWN_COST)
        self._flood = FloodLimit(_MOST_UNKNOWN, self._marks)
        self._malformed = self._ignored = 0
        self.contradictions = 0
        """Number of instances that were heard in the name of a module of which another one is alive."""

    def start(self) -> None:
        """Begin to listen. The bus must be open."""
        self._subscription = self._bus.subscribe(
            STATUS, self._on_message, capacity_bytes=_QUEUE_BYTES, namespaces=self._namespaces, largest=ONE_PIECE
        )
        self._flood.watch(self._subscription)

    def stop(self) -> None:
        """Stop listening. Stopping twice is fine."""
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    def hear_all(self) -> None:
        """Hear modules of all namespaces from now on. Calling it twice is fine. Raises ``BusError`` if the bus
        refuses: then it is as before."""
        if self._namespaces is None:
            return
        some, self._namespaces = self._namespaces, None
        if (before := self._subscription) is None:
            return
        try:
            self.start()
        except BusError:
            self._namespaces = some
            raise
        before.close()
        self.ask_for_skills()

    def ask_for_skills(self) -> bool:
        """Ask all modules to describe themselves, unless that was asked just now. Return whether they were asked."""
        now = clock.monotonic()
        if now - self._described < _ASK_AGAIN_S or not self._may_ask.take():
            return False
        self._described = now
        request = ToolStreamRequest(utime=clock.utime(), kind=DESCRIBE)
        self._bus.publish(REQUESTS, encode(request))
        return True

    @property
    def malformed(self) -> int:
        """Number of invalid heartbeats, and of invalid states and skills in them."""
        return self._malformed + self._table.malformed

    @property
    def ignored(self) -> int:
        """Number of heartbeats, and of reports in them, for which there was no room or no time."""
        return self._ignored + self._table.ignored

    @property
    def missed_at(self) -> float:
        """The time on the loop's clock at which there was last no room for heartbeats."""
        return float("-inf") if self._subscription is None else self._subscription.missed_at

    def established(self) -> Iterator[tuple[str, str]]:
        """Yield the modules for which one instance has spoken for long, and that instance."""
        for name, entry in self._entries.items():
            if (established := entry.instances.established) is not None:
                yield name, established.id

    def _marks(self) -> Iterator[Mark]:
        """Yield the marks of the instances whose heartbeats a flood must not drown."""
        for name, instance in self.established():
            whose = beginning(name, instance)
            yield Mark(BEGIN + len(whose) - MARK_BYTES, whose[-MARK_BYTES:])

    def _on_message(self, channel: str, data: bytes) -> None:
        self._attention.now()  # before who seems to be gone makes room for others
        whose = ""
        try:
            head = self._reader.head(data, channel)
            whose = f" of module {head.module[:_SHOWN]!r}"
            if not self._may_take(head):
                return
            status = self._reader.status(head, data, channel)
            if not status.instance:
                self._take_report(status)
                return
            self._take_heartbeat(status)
        except (MessageError, ValueError) as error:  # pydantic's error is one
            self._malformed += 1
            _log.warning("skipped a heartbeat%s: %s", whose, error)
            return
        self._taken(status)

    def _may_take(self, head: Head) -> bool:
        """Return whether there is room and time for a heartbeat: those of known modules come before all others."""
        entry = self._entries.get(head.module)
        known = entry is not None and (not head.instance or entry.instances.is_known(head.instance))
        self._flood.came(limited=not known)
        if known:
            return True
        if entry is None and not head.instance:
            return False  # somebody's word about a module that nobody knows
        if not self._unknown.take(head.cost) or (entry is None and not self._table.make_room()):
            self._ignored += 1
            _log.warning("more modules than can be looked at; heartbeat of %r ignored", head.module)
            return False
        return True

    def _take_heartbeat(self, status: ModuleStatus) -> None:
        """Take a heartbeat. Raises ``ValueError`` for invalid skills."""
        now = clock.monotonic()
        entry = self._entries.get(status.module)
        known = None if entry is None else entry.report_of(status.instance)
        part, skills = self._description_in(status, known) if status.skills_json else (None, None)
        if entry is None:
            entry = self._entries[status.module] = ModuleEntry(since=now, heard=now)
        entry.lives(status.instance)
        # What a module is said to be is said by one instance, as long as it lives: others can't make it flap.
        if not entry.instances.heard(status, now, self.missed_at):
            return
        for other in entry.instances.contradicting(now):
            self.contradictions += 1
            _seldom.warning(
                "module %r is alive as %s; what comes in its name from %s is not believed",
                status.module,
                entry.instances.active,
                other,
            )
        self._table.heard(status.module, entry)
        self._table.turn_to_active(status.module, entry)
        report = entry.current
        report.health = at_most(status.health, MAX_HEALTH)
        if status.health == ENDED:
            entry.instances.left(status.instance)
        if part is not None:
            self._table.take_fragment(report, status, part)
        elif skills is not None:
            report.doubted = report.knows(status.skills_version) and report.skills_text != hash(status.skills_json)
            self._table.take_skills(report, status, skills)
        elif self._lacks_skills(report, status) and self.ask_for_skills():
            report.asked, report.doubted = True, False
        self._table.take_state(report, status)

    def _lacks_skills(self, report: InstanceReport, status: ModuleStatus) -> bool:
        """Return whether an instance is to be asked for its skills. One that names no version may have some, or may
        never answer: it is asked once."""
        if report.doubted:
            return True
        if report.skills_version != status.skills_version and (status.skills_version or not report.asked):
            return True
        return self._table.has_room_again(status.module, report)

    def _description_in(
        self, status: ModuleStatus, known: InstanceReport | None
    ) -> tuple[SkillFragment | None, tuple[SkillInfo, ...] | None]:
        """Return the part of a description in a heartbeat, None for one of known skills, or else all skills that it
        describes. Raises ``ValueError``."""
        text = status.skills_json
        skipped = partial(self._skipped, status.module)
        if is_fragment(text):
            knows = known is not None and known.knows(status.skills_version)
            return None if knows else fragment_in(text, skipped), None
        return None, known.skills if known is not None and known.skills_text == hash(text) else skills_in(
            text, skipped
        )

    def _skipped(self, module: str, why: str) -> None:
        self._malformed += 1
        _log.warning("skipped a skill of module %r: %s", module, why)

    def _take_report(self, status: ModuleStatus) -> None:
        """Take a status without an instance, which is not the module's own: it says what is wrong with the module."""
        entry = self._entries.get(status.module)
        if entry is not None:
            entry.reported(at_most(status.health, MAX_HEALTH), status.pid)
