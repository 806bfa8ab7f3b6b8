"""The host of one process's modules: takes calls off the bus, runs skills, streams what they say, beats the heart."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from dimos_streams.bus import Bus, Subscription
from dimos_streams.bus.sizes import ONE_PIECE
from dimos_streams.common.allowance import Allowance
from dimos_streams.common.json.writing import json_text
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.secrets import redacted
from dimos_streams.errors import MessageError, SkillArgumentError, SkillError
from dimos_streams.messages.codec import decode
from dimos_streams.messages.dimos_streams import SkillCall, SkillCancel
from dimos_streams.module import Module
from dimos_streams.tool_stream.addressee import first_texts
from dimos_streams.tool_stream.calling.children import ChildStreams
from dimos_streams.tool_stream.calling.client import BusSkillClient
from dimos_streams.tool_stream.event import OUTCOMES, Outcome
from dimos_streams.tool_stream.hosting.begun_calls import BegunCalls
from dimos_streams.tool_stream.hosting.heart import Heart
from dimos_streams.tool_stream.hosting.host_admission import IncomingCall, admitted, may_be_done_twice, read_call
from dimos_streams.tool_stream.hosting.hosted_module import HostedModule
from dimos_streams.tool_stream.hosting.loss import OVERDUE_AFTER_S
from dimos_streams.tool_stream.hosting.running_call import RunningCall
from dimos_streams.tool_stream.hosting.skill_run import close_failed, run_call
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.heartbeat import STOPS
from dimos_streams.tool_stream.protocol.bounds import MAX_ARGUMENTS, MAX_REASON, REQUEST_BYTES
from dimos_streams.tool_stream.protocol.call_message import check_names
from dimos_streams.tool_stream.protocol.channels import CALLS, CANCELS
from dimos_streams.tool_stream.protocol.close_data import BAD_ARGUMENTS
from dimos_streams.tool_stream.sending.call_writer import CallWriter
from dimos_streams.tool_stream.sending.publisher import ToolStreamPublisher

_CANCEL_BOUND_S = OVERDUE_AFTER_S
_DRAIN_BOUND_S = 0.3
"""Maximum time, in seconds, for receivers to take the ends of the calls of all modules that stop."""
_MAX_MESSAGE = 512 * 1024
_REJECTIONS = (20.0, 200.0)
"""Maximum number of calls that are rejected, per second and at once. Each rejection is two events, and
nobody may cause a flood of them; a caller that gets no answer asks again."""

_logger = logging.getLogger(__name__)
_log = LimitedLog(_logger)


class SkillHost:
    """The host of modules' skills on one bus. Calls are idempotent by id: a call that comes twice runs once."""

    def __init__(self, bus: Bus, namespaces: Sequence[str] | None) -> None:
        """``namespaces`` are those of its modules, if all of them are in some: see ``ModuleDirectory``."""
        self.publisher = ToolStreamPublisher(bus, on_describe=lambda: self._heart.describe())
        self.directory = ModuleDirectory(bus, namespaces)
        self._bus = bus
        self._children = ChildStreams(bus, self.directory, lambda: self.publisher.instance)
        self._modules: dict[str, HostedModule] = {}
        self._heart = Heart(bus, self.publisher, self.directory, self._modules, self._children.refusal_note)
        self._begun = BegunCalls()
        self._subscriptions: list[Subscription] = []
        self._rejections = Allowance(*_REJECTIONS)

    def start(self) -> None:
        """Begin to take calls. The bus must be open."""
        self.publisher.start()
        self.directory.start()
        self._subscriptions = [
            self._bus.subscribe(CALLS, self._on_call, capacity_bytes=REQUEST_BYTES, largest=ONE_PIECE),
            self._bus.subscribe(CANCELS, self._on_cancel, capacity_bytes=REQUEST_BYTES, largest=ONE_PIECE),
        ]
        self._heart.start()

    def add(self, module: Module) -> None:
        """Offer a module's skills from now on. Raises ``TypeError`` for skills that can't be described."""
        self._modules[module.name] = HostedModule.of(module)
        module.on_state = lambda: self._heart.send(module.name)
        module.on_skills = lambda: self._offer_anew(module.name)
        self._heart.introduce(module.name)

    def _offer_anew(self, name: str) -> None:
        self._modules[name].offer_anew()
        self._heart.introduce(name)

    async def remove(
        self, module: Module, reason: str, reasons: Mapping[str, str] | None = None, *, failed: bool = False
    ) -> None:
        """Cancel a module's calls, wait for them within a bound, and offer its skills no more. ``reasons`` are those
        of calls that have others, by id. If the module has ``failed``, so have its calls.

        If receivers have not got the ends of its calls yet, its heart beats on until ``stop``: they learn from it
        what they have missed.
        """
        hosted = self._modules.get(module.name)
        if hosted is None:
            return
        hosted.stops_for = reason
        self._heart.announce_stop(module.name)
        calls = tuple(hosted.calls.values())
        for running in calls:
            why = (reasons or {}).get(running.id, reason)
            if failed:
                running.disown(Outcome.FAILED, why)
            else:
                running.cancel(why)
        if calls:
            await asyncio.wait([running.task for running in calls], timeout=_CANCEL_BOUND_S)
            for running in calls:
                if not running.task.done():
                    hosted.loss.give_up(running, reason)
        module.on_state = module.on_skills = lambda: None
        if not self.publisher.heartbeat_calls(module.name):
            self._leave(module.name)

    async def stop(self) -> None:
        """Cancel all calls, let receivers take their ends, and leave the bus. Stopping twice is fine."""
        for hosted in list(self._modules.values()):
            if not hosted.stops_for:  # others have been waited for already
                await self.remove(hosted.module, STOPS)
        if self._heart.beats:
            await self.publisher.drain(_DRAIN_BOUND_S)
        for name in list(self._modules):
            self._leave(name)
        await self._heart.stop()
        for subscription in self._subscriptions:
            subscription.close()
        self._subscriptions = []
        self._children.stop()
        self.publisher.stop()
        self.directory.stop()

    def _leave(self, name: str) -> None:
        self._heart.say_goodbye(name)
        del self._modules[name]

    def _on_call(self, channel: str, data: bytes) -> None:
        first = first_texts(SkillCall, data, 3)
        if first is not None and not self._may_be_meant(*first):
            return
        try:
            if len(data) > _MAX_MESSAGE:
                raise MessageError(
                    channel, SkillCall.msg_name, f"it has {len(data)} bytes, {_MAX_MESSAGE} are possible"
                )
            message = decode(SkillCall, data, channel=channel)
            hosted = self._modules.get(message.module)
            if hosted is None or hosted.stops_for:
                return
            check_names(message, channel)
        except MessageError as error:
            _log.warning("skipped a call: %s", error)
            return
        if message.call_id in self._begun:
            self.publisher.repeat(message.call_id)
        elif may_be_done_twice(hosted, message, self._heart.started_utime):
            _log.warning(
                "call %s of %r ignored: it was asked for before this process began; another one may have begun it",
                message.call_id,
                message.skill,
            )
        elif not self.directory.reads_outdated:
            self._begin(hosted, message)

    def _may_be_meant(self, call_id: str, module: str, skill: str) -> bool:
        """Return whether a call is for a module of this process and is not just to be ignored."""
        hosted = self._modules.get(module)
        if hosted is None:
            return False
        if skill in hosted.skills or call_id in self._begun or self._rejections.has():
            return True
        self._ignore(call_id, skill)
        return False

    def _ignore(self, call_id: str, skill: str) -> None:
        _log.warning("more calls than can be rejected; call %r of %r ignored", call_id, skill)

    def outcome(self, call_id: str) -> Outcome | None:
        """Return the outcome of a call as far as it is known here, or None if it is open or not remembered."""
        running = self._running(call_id)
        return self._begun.outcome(call_id) if running is None else running.writer.outcome

    def _running(self, call_id: str) -> RunningCall | None:
        return next((hosted.calls[call_id] for hosted in self._modules.values() if call_id in hosted.calls), None)

    def _begin(self, hosted: HostedModule, message: SkillCall) -> None:
        call = IncomingCall(hosted, message)
        try:
            given, on_loss = read_call(message)
            size = len(json_text(given).encode())
            call = IncomingCall(hosted, message, given if size <= MAX_ARGUMENTS else {}, on_loss)
            spec, checked = admitted(hosted, message, given, size)
        except SkillError as error:
            self._reject(call, error)
            return
        writer, policy = self._open(call), spec.policy
        client = BusSkillClient(self._bus, self.directory, self._children, writer, read_only=policy.read_only)
        running = RunningCall(writer, call.arguments, message.parent, client, moves=policy.moves, on_loss=on_loss)
        work = run_call(hosted.module, spec, running, checked, after_s=self.directory.catching_up_s)
        running.task = asyncio.get_running_loop().create_task(work, name=f"{message.skill}:{message.call_id}")
        hosted.calls[message.call_id] = running
        self._begun.begin(message.call_id)
        running.task.add_done_callback(lambda task: self._forget(hosted, running, task))
        running.task.add_done_callback(lambda _: client.end_children())
        if (reason := self._begun.withdrawal(message.call_id)) is not None:
            running.cancel(reason)  # before its first step, so that nothing of its skill runs

    def _reject(self, call: IncomingCall, why: SkillError) -> None:
        call_id, skill = call.message.call_id, call.message.skill
        if self._rejections.take():
            data = {"error": BAD_ARGUMENTS} if isinstance(why, SkillArgumentError) else {}
            self._open(call).close(Outcome.REJECTED, redacted(str(why))[:MAX_REASON], data)
            self._begun.reject(call_id)
        else:
            self._ignore(call_id, skill)

    def _open(self, call: IncomingCall) -> CallWriter:
        message = call.message
        return self.publisher.begin(
            message.call_id,
            module=message.module,
            skill=message.skill,
            caller=message.caller,
            text=call.text,
            data=call.data,
        )

    def _on_cancel(self, channel: str, data: bytes) -> None:
        try:
            message = decode(SkillCancel, data, channel=channel)
            if message.outcome and message.outcome not in OUTCOMES:
                raise MessageError(channel, SkillCancel.msg_name, f"outcome is {message.outcome!r}")
        except MessageError as error:
            _log.warning("skipped a cancel: %s", error)
            return
        outcome = Outcome(message.outcome) if message.outcome else None
        running = self._running(message.call_id)
        if running is not None and outcome is not None:
            # That a call has completed only its skill can say: from anybody else it means that it is over.
            running.disown(Outcome.CANCELLED if outcome is Outcome.COMPLETED else outcome, message.reason)
        elif running is not None:
            running.cancel(message.reason)
        elif message.call_id not in self._begun:
            self._begun.withdraw(message.call_id, outcome, message.reason)
        elif outcome not in (None, Outcome.COMPLETED):
            self._learn(message.call_id, outcome)

    def _learn(self, call_id: str, outcome: Outcome) -> None:
        """Take the bridge's word on how a call ended, which is the last one."""
        here = self._begun.outcome(call_id)
        if here is not None and here is not outcome:
            _logger.warning("call %s ended here as %s; the bridge had closed it as %s before", call_id, here, outcome)
            self._begun.end(call_id, outcome)

    def _forget(self, hosted: HostedModule, running: RunningCall, task: asyncio.Task[None]) -> None:
        hosted.calls.pop(running.id, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            close_failed(running, error)  # one that is no ``Exception``, as those by which pytest ends a test
        # A task that is cancelled before its first step never runs: nothing in it could have closed the stream.
        running.close(Outcome.CANCELLED, running.cancel_reason or "it was ended before it began", {})
        hosted.loss.ended(running)
        self._begun.end(running.id, running.writer.outcome)
