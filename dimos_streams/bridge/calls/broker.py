"""The broker: puts together what looks after calls, and gives all callers one view of skills, calls and events."""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Unpack

from dimos_streams.bridge.calls.authority import Authority
from dimos_streams.bridge.calls.bus_requests import BusRequests
from dimos_streams.bridge.calls.call_admission import CallAdmission
from dimos_streams.bridge.calls.call_checker import CallChecker
from dimos_streams.bridge.calls.contention import Contention
from dimos_streams.bridge.calls.idempotency import IdempotencyKeys
from dimos_streams.bridge.calls.ledger import Ledger
from dimos_streams.bridge.calls.mcp_approval import McpApproval
from dimos_streams.bridge.calls.reviews import CallReviews
from dimos_streams.bridge.calls.sending.call_sender import CallSender
from dimos_streams.bridge.calls.settings.live_settings import LiveSettings
from dimos_streams.bridge.calls.settings.rollback_file import SUFFIX as ROLLBACKS
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.stops.cancels import Cancels
from dimos_streams.bridge.calls.stops.robot_stops import RobotStops
from dimos_streams.bridge.calls.stops.stop_state import SUFFIX as STOPS
from dimos_streams.bridge.calls.watchdog import Watchdog
from dimos_streams.bus import Bus
from dimos_streams.common.json.reading import repaired
from dimos_streams.common.secrets import redacted_data
from dimos_streams.common.tasks import ends_within
from dimos_streams.errors import CallRejectedError, UnknownCallError
from dimos_streams.journal.broadcast import JournalBroadcast
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.operator.agents import AgentView, agents_offered
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.family import asked_by
from dimos_streams.tool_stream.gateway import CallTerms, CallView, JournalEntry, OfferedSkill
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.instances import UNHEARD_S
from dimos_streams.tool_stream.liveness.module_view import ModuleView
from dimos_streams.tool_stream.overtaken import overtaken
from dimos_streams.tool_stream.receiving.receiver import ToolStreamReceiver
from dimos_streams.tool_stream.review import review_skill

DEAF_S = UNHEARD_S
"""Time, in seconds, without a message of its own from the bus after which a bridge counts as deaf."""


class BrokerTerms(CallTerms, total=False):
    """The terms of a call, with those that only a broker takes."""

    lease_wait_s: float
    """The longest time in s to wait for a resource that another call holds; without it, none."""
    begin_by: float | None
    """The time on ``clock.steady`` after which the call does not begin any more, whatever it has waited for."""
    journalled: bool
    """False if its events go only to those who listen to the ledger for them: for calls of the bridge itself, of
    whose events only the newest counts."""


class Broker:
    """A ``SkillGateway`` on a bus. Use from the bus's loop only."""

    def __init__(
        self,
        bus: Bus,
        directory: ModuleDirectory,
        broadcast: JournalBroadcast,
        *,
        random: random.Random,
        name: str = "bridge",
        beside: Path | None = None,
        agents: Iterable[str] = (),
        mcp_approval: McpApproval = "refuse",
    ) -> None:
        """``directory`` is started and stopped by somebody else; the journal must be open; ``random`` makes the ids
        of calls; ``agents`` are the names of those that the blueprint has. Files next to the path ``beside`` keep
        which robots an operator has stopped and which settings are to be rolled back; without it this is forgotten
        when the broker ends."""
        self._name = name
        self._random = random
        self.bus = bus
        self.ledger = ledger = Ledger(broadcast)
        self.receiver = ToolStreamReceiver(
            bus,
            ledger.enter,
            resume=ledger.resume,
            name=name,
            may_open=self._may_open,
            instances=directory.instances,
        )
        self.directory = directory
        self._end_listening: Callable[[], None] = lambda: None
        self._sender = sender = CallSender(bus, ledger)
        self._watchdog = Watchdog(bus, ledger, directory, self.receiver, sender)
        self._authority = authority = Authority(directory, ledger.calls, agents, mcp_approval)
        self.stops = RobotStops(bus, ledger, directory, sender, beside and beside.with_suffix(STOPS))
        self.cancels = Cancels(ledger, sender, self.stops.check_known)
        checker = CallChecker(directory, authority, self.stops, ledger.calls)
        contention = Contention(ledger, sender, authority, checker)
        self._reviews = CallReviews(name, ledger, sender, authority, contention, self._new_id)
        self._admission = CallAdmission(ledger, authority, checker, contention, self._reviews)
        self._requests = BusRequests(bus, ledger, sender, authority, self._admission, self.receiver, directory)
        rollbacks = beside and beside.with_suffix(ROLLBACKS)
        self.settings = LiveSettings(directory, authority, sender, self._new_id, rollbacks)
        self._keys = IdempotencyKeys(ledger.find)

    @property
    def is_deaf(self) -> bool:
        """True if the bridge has not heard its own heartbeats for so long that no flood explains it: a route is gone,
        or the other end of its transport."""
        own = self.directory.module(self._name)
        return own is not None and own.age_s > DEAF_S

    async def start(self) -> None:
        """Take up the journal's calls, then listen to the bus, which must be open."""
        found = self.ledger.restore()
        self._authority.restore()
        for call in found:
            if call.key is not None:
                self._keys.restore(call)
        self.receiver.start()
        self._end_listening = self.directory.listen(self._on_status)
        self._requests.start()
        self._watchdog.start()
        self.stops.start()
        self.settings.start()

    async def stop(self) -> None:
        """Leave the bus; what has come in is entered first. Open calls run on. Twice is fine."""
        await self.settings.stop()
        await self.stops.stop()
        await self._watchdog.stop()
        await self._requests.stop()
        self._end_listening()
        self.receiver.stop()

    def malformed(self) -> dict[str, int]:
        """The numbers of malformed messages that were skipped, by what they were meant to be."""
        return {
            "events": self.receiver.statistics().malformed,
            "heartbeats": self.directory.malformed,
            "calls": self._requests.malformed,
        }

    def contradictions(self) -> int:
        """The number of module instances and call events that came in another one's name; none was believed."""
        return self.directory.contradictions + self.receiver.statistics().refused

    async def skills(self) -> list[OfferedSkill]:
        """See ``SkillGateway``."""
        return self._all_offered()

    def _all_offered(self) -> list[OfferedSkill]:
        return [
            self._offered(
                called.module,
                called.info,
                shadowed=tuple(self._offered(*each) for each in called.shadowed if each[1].audience != "bridge"),
            )
            for called in self.directory.called()
            if called.info.audience != "bridge"
        ]

    async def agents(self, wanted: str) -> list[AgentView]:
        """Return the agents that are offered. A bridge that has just begun to listen waits for the module that is
        wanted or, if no module or a namespace is, for all agents: the first one that it hears would be taken for the
        only one. Raises ``CallRejectedError`` if all calls are ended meanwhile, as of a call that waits."""

        def is_known() -> bool:
            found = agents_offered(self._all_offered())
            if self.directory.is_acquainted:
                return not wanted or any(each.is_called(wanted) for each in found)
            return any(each.name == wanted for each in found)

        ended = self.ledger.ended_all
        await self.directory.meet(is_known)
        if self.ledger.ended_all > ended:
            raise CallRejectedError(overtaken(wanted or "agent", "cancel"))
        return agents_offered(self._all_offered())

    def _offered(self, module: ModuleView, info: SkillInfo, shadowed: tuple[OfferedSkill, ...] = ()) -> OfferedSkill:
        return OfferedSkill(
            **info.model_dump(),
            module=module.name,
            available=module.alive,
            agent=review_skill(module.skills) is not None,
            shadowed=shadowed,
        )

    async def modules(self) -> list[ModuleView]:
        """Return all modules that were heard of."""
        return self.directory.modules()

    async def call(
        self,
        skill: str,
        arguments: Mapping[str, Any],
        *,
        caller: str,
        **terms: Unpack[BrokerTerms],
    ) -> str:
        """See ``SkillGateway``."""
        key = terms.get("idempotency_key")
        new = CallState(
            call_id=self._new_id(),
            skill=skill,
            module="",
            caller=caller,
            arguments=redacted_data(repaired(arguments)),
            key=key,
            journalled=terms.get("journalled", True),
            asked_on_loss=terms.get("on_loss"),
            on_duplicate=terms.get("on_duplicate"),
            lease_wait_s=terms.get("lease_wait_s", 0.0),
            robot_order=terms.get("robot_order"),
            begin_by=terms.get("begin_by"),
        )
        if key is not None:
            return await self._keys.begin(new, self._admission.admit)
        await self._admission.admit(new)
        return new.call_id

    def has_begun(self, caller: str, key: str) -> bool:
        """Return whether a caller has begun a call with an idempotency key, which begins no other one."""
        return self.begun_with(caller, key) is not None

    def begun_with(self, caller: str, key: str) -> str | None:
        """The id of the call that a caller has begun with an idempotency key, None if there is none."""
        return self._keys.call_of(caller, key)

    async def cancel(self, call_id: str, reason: str) -> None:
        """See ``SkillGateway``."""
        self._sender.order_end(self._find(call_id), reason)

    async def cancel_calls(self, call_ids: Collection[str], reason: str) -> None:
        """See ``SkillGateway``."""
        await self.cancels.cancel(call_ids, reason, within_s=0.0)

    async def calls(self, *, open_only: bool = False) -> list[CallView]:
        """See ``SkillGateway``."""
        return [call.view() for call in (self.ledger.calls.open if open_only else self.ledger.calls)]

    async def view(self, call_id: str) -> CallView:
        """One call, for as long as the journal has it. Raises ``UnknownCallError``."""
        return self._find(call_id).view()

    def journals(self, call_id: str) -> bool:
        """Return whether a call's events can be read, now or later; those of reports to watchers can't."""
        call = self.ledger.begun(call_id)
        return call is None or call.journalled

    async def wait(self, call_id: str, until: Literal["answer", "close"], timeout_s: float) -> bool:
        """Wait for a call's answer or close; return False when time ran out. Raises ``UnknownCallError``."""
        call = self._find(call_id)
        return await ends_within(timeout_s, (call.answered if until == "answer" else call.closed).wait())

    async def offset(self) -> int:
        """See ``SkillGateway``."""
        return self.ledger.broadcast.last_offset

    async def robot_orders(self) -> Mapping[str, int]:
        """See ``SkillGateway``."""
        return self.stops.orders

    async def events(
        self, *, after: int, caller: str | None = None, call_id: str | None = None
    ) -> AsyncIterator[JournalEntry]:
        """See ``SkillGateway``. Ends when the broadcast is closed."""
        with contextlib.closing(self.ledger.broadcast.reader(after=after, caller=caller, call_id=call_id)) as reader:
            while page := await reader.page():
                for entry in page:
                    yield entry.decoded

    def _find(self, call_id: str) -> CallState:
        call = self.ledger.begun(call_id)
        if call is None:
            raise UnknownCallError(call_id)
        return call

    def _new_id(self) -> str:
        return f"{self._random.getrandbits(64):016x}"

    def _may_open(self, event: ToolEvent) -> bool:
        """Return whether an event may be the first one of a call: only the module that was asked to run the call may
        send it.

        Of calls that were begun elsewhere everything is believed, as nothing else is known of them. But a call whose
        asking call the bridge looks after was begun by the bridge, which may have lost its journal since; its event
        must come from a module that can run the skill.
        """
        if not self.ledger.resume(event.call_id).unsolicited:
            call = self.ledger.calls.get(event.call_id)
            return self.directory.speaks_for((call and call.module) or event.module, event.instance)
        asking = self.ledger.calls.get(asked_by(event.call_id))
        if asking is None or asking.unsolicited:
            return True
        return self.directory.can_run(event.skill, event.module, event.instance)

    def _on_status(self, status: ModuleStatus) -> None:
        self.receiver.on_status(status, active=self.directory.is_active(status.module, status.instance))
        self._watchdog.on_status(status)
        self._reviews.on_status(status)
