"""A log fed to the modules under test in virtual time: the one run that a replay consists of."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from dimos_streams import clock
from dimos_streams.bus import Bus, create_bus
from dimos_streams.errors import MessageError, ModuleFailedError
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import SkillCall, ToolStreamRequest
from dimos_streams.module import LOSS_BOUND_S, RunContext, Services
from dimos_streams.recording.format import LogEvent
from dimos_streams.recording.metadata import CHANNEL
from dimos_streams.recording.reader import LogReader, OnProgress
from dimos_streams.recording.steady_times import steady
from dimos_streams.regression.comparison import Comparison
from dimos_streams.regression.feed import Feed, ReplayLoop
from dimos_streams.regression.matching import Output, StreamResult
from dimos_streams.regression.module_lives import ENDS_HERE, ModuleLives
from dimos_streams.regression.recorded.earlier_calls import EarlierCalls
from dimos_streams.regression.recorded.log_tally import LogTally
from dimos_streams.regression.report import Report
from dimos_streams.regression.rewrite import Rewriter
from dimos_streams.regression.scope import Scope, call_of
from dimos_streams.regression.settings.initial_settings import Assignments
from dimos_streams.regression.tolerances import Tolerances
from dimos_streams.regression.untested_calls import UntestedCalls
from dimos_streams.runtime.module_host import ModuleHost
from dimos_streams.tool_stream.event import ToolEvent
from dimos_streams.tool_stream.liveness.heartbeat import STOPS
from dimos_streams.tool_stream.protocol.channels import CALLS, EVENTS, GONE, REQUESTS
from dimos_streams.tool_stream.signature import parse_signature, signed
from dimos_streams.tool_stream.wire.packing import pack_event
from dimos_streams.tool_stream.wire.unpacking import unpack_event


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """A log as a replay reads it: its events, and what is known of the run at its beginning."""

    log: LogReader
    earlier: EarlierCalls
    settings: Mapping[str, Assignments]
    """The settings that had been changed when the log begins, by module."""
    seed: int
    acknowledged: bool
    """Whether the log has acknowledgements."""
    withheld: Set[str]
    """The channels that the modules read and that the log says it leaves out."""


class ReplayRun:
    """A replay while it runs; for one run."""

    def __init__(
        self,
        recorded: RecordedRun,
        scope: Scope,
        tolerances: Tolerances,
        *,
        rewriter: Rewriter | None,
        with_series: bool,
        on_progress: OnProgress | None,
    ) -> None:
        """``rewriter`` writes the log anew."""
        self._recorded = recorded
        self._log = recorded.log
        self._earlier = recorded.earlier
        self._scope = scope
        self._tolerances = tolerances
        self._on_progress = on_progress or (lambda log: None)
        self._rewriter = rewriter
        self._comparison = Comparison(tolerances, with_series=with_series, on_left=self._on_left)
        self._bus: Bus = create_bus("memq://")
        self._host = ModuleHost(self._bus)
        self._made_up: dict[int, bytes] = {}
        self._tally = LogTally(scope, recorded.earlier, recorded.withheld)
        self._inputs = self._outputs = 0
        self._feed: Feed | None = None
        self._untested = UntestedCalls()
        self._lives: ModuleLives  # from ``run`` on
        self._over = False

    async def run(self, loop: ReplayLoop) -> Report:
        """Start the modules, feed them, stop them, and return the report."""
        await self._bus.open()
        self._bus.subscribe_all(self._on_message, capacity=1 << 20, wants=self._scope.may_be_output)
        host = self._host
        problem = ""
        # Where nobody's acknowledgements were recorded their absence says nothing.
        bound_s = LOSS_BOUND_S if self._recorded.acknowledged else math.inf
        context = RunContext(seed=self._recorded.seed, loss_bound_s=bound_s, services=Services())
        lives = self._lives = ModuleLives(
            host, self._scope.plans, context, self._untested.ended, self._recorded.settings
        )
        feed = self._feed = loop.feed = Feed(
            steady(self._log.events(), self._tally.times), self._judge, self._publish
        )
        try:
            await lives.start()
            problem = await self._until_over(lives, feed)
        finally:
            self._over = True
            await host.stop(ENDS_HERE if feed.done.done() else STOPS)
            await asyncio.sleep(0.001)  # what was published last is handled when time passes
            await self._bus.close()
        return self._report(problem)

    async def _until_over(self, lives: ModuleLives, feed: Feed) -> str:
        living = asyncio.ensure_future(lives.run())
        either: list[asyncio.Future[None]] = [living, feed.done]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if living.done():
                living.result()
            return ""
        except ModuleFailedError as error:
            return str(error)
        finally:
            living.cancel()
            with contextlib.suppress(asyncio.CancelledError, ModuleFailedError):
                await living

    def _judge(self, event: LogEvent) -> bool | None:
        """See ``Feed``."""
        channel, data = event.channel, event.data
        if channel == CHANNEL:
            self._keep(event)
            return False
        self._tally.add(event)
        role = self._scope.role(channel, data)
        if channel == EVENTS:
            self._scope.watch(event)
        if role == "output":
            return True if self._judge_output(event) else None
        if self._lives.is_change(event):
            return True
        if role != "input":
            self._keep(event)
            return False
        self._tally.unreadable.add(event)
        if channel == CALLS:
            self._scope.calls.add(decode(SkillCall, data, CALLS).call_id)
        return True

    def _judge_output(self, event: LogEvent) -> bool:
        """Have an output of the log compared; return whether it takes the place of an input, too."""
        channel, data, utime = event.channel, event.data, event.utime
        self._tally.unreadable.add(event)
        said = unpack_event(data) if channel == EVENTS else None
        if said is not None and said.call_id in self._earlier:
            self._keep(event)
            return False
        if said is not None:
            self._untested.recorded(said)
        is_earlier = self._earlier.may_have_sent(channel, utime)
        optional = self._scope.may_be_of_others(channel, utime)
        self._comparison.recorded(channel, data, utime, optional=optional, is_earlier=is_earlier)
        self._outputs += not is_earlier
        return said is not None and self._make_up_call(said, event.offset)

    def _make_up_call(self, said: ToolEvent, offset: int) -> bool:
        """Make up the request of a call if it begins with an event that was said and the log lacks it; return whether
        it was made up."""
        if said.call_id in self._scope.calls or said.type != "open":
            return False
        self._scope.calls.add(said.call_id)
        self._made_up[offset] = call_of(said)
        return True

    def _publish(self, event: LogEvent) -> bool:
        """See ``Feed``."""
        now = clock.utime()
        self._comparison.settle(now)
        if self._rewriter is not None:
            self._rewriter.flush(now)
        made_up = self._made_up.pop(event.offset, None)
        if made_up is None:
            self._keep(event)  # behind what the modules gave before it in the same instant
        if self._lives.take(event):
            return True
        if made_up is not None:
            self._bus.publish(CALLS, _undated(made_up))
        elif event.channel == CALLS:
            self._bus.publish(CALLS, _undated(event.data))
        elif event.channel == REQUESTS:
            self._bus.publish(event.channel, self._asked_anew(event.data))
        elif event.channel == EVENTS:
            self._bus.publish(EVENTS, self._resigned(event.data))
        else:
            self._bus.publish(event.channel, event.data)
        self._inputs += 1
        if self._inputs % 64 == 0:
            self._on_progress(self._log)
        return False

    def _on_message(self, channel: str, data: bytes) -> None:
        if self._scope.role(channel, data) != "output":
            return
        if channel == EVENTS and self._rewriter is not None:
            self._untested.replayed(unpack_event(data))
        utime = clock.utime()
        first, last = self._tally.first_utime, self._tally.last_utime
        # A part of a virtual recording is replayed from the beginning of the run that it is of.
        is_outside = utime < first or self._over or (self._feed is not None and self._feed.is_over(utime))
        optional = is_outside or self._earlier.may_have_sent(channel, utime)
        self._comparison.replayed(channel, data, utime, optional=optional)
        if self._rewriter is not None and first <= utime <= last:
            self._rewriter.add(utime, channel, data)

    def _resigned(self, data: bytes) -> bytes:
        """Return what a bridge says of a call that was never begun in the name of the instance that asks for it in
        the replay; other events as they are."""
        said = unpack_event(data)
        if not self._scope.is_of_bridge(said):
            return data
        return pack_event(dataclasses.replace(said, instance=self._host.instance))

    def _asked_anew(self, data: bytes) -> bytes:
        """Return a request to an instance of the recorded run as one to that which has the call in the replay. The
        answer to one, from a module that is not under test, stays as it is."""
        try:
            request = decode(ToolStreamRequest, data, REQUESTS)
        except MessageError:  # whoever reads it says so
            return data
        if request.kind == GONE:
            return data
        request.receiver = signed(parse_signature(request.receiver)[0], self._host.instance)
        return encode(request)

    def _keep(self, event: LogEvent) -> None:
        if self._rewriter is not None:
            self._rewriter.add(event.utime, event.channel, event.data)

    def _on_left(self, channel: str, output: Output[bytes]) -> None:
        if self._rewriter is not None:
            self._rewriter.add(output.utime, channel, output.value)

    def _report(self, problem: str) -> Report:
        streams = self._comparison.finish()
        compared = self._outputs and any(stream.recorded or stream.replayed for stream in streams)
        if not problem and not compared:
            but = " but for calls that began before it: begin earlier" if self._earlier.names else ""
            problem = f"the log has nothing that {' or '.join(sorted(self._scope.names))} sent or said{but}"
        problem = "; ".join(filter(None, (problem, *self._faults(streams))))
        differs = any(stream.missing for stream in streams) or not self._passed(streams)
        report = Report(
            log=str(self._log.path),
            modules=tuple(plan.spec.name for plan in self._scope.plans),
            tolerances=self._tolerances,
            streams=streams,
            start_utime=self._tally.first_utime,
            span_s=self._tally.span_s,
            calls=len(self._scope.calls),
            inputs=self._inputs,
            remarks=tuple(self._tally.remarks(differs=differs)),
            problem=problem,
            updated=self._rewriter is not None and not problem,
            series=self._comparison.series,
        )
        if self._rewriter is not None and report.updated:
            self._rewriter.finish()
        return report

    def _passed(self, streams: Sequence[StreamResult]) -> bool:
        return all(stream.passed(self._tolerances.unmatched) for stream in streams)

    def _faults(self, streams: Sequence[StreamResult]) -> Iterator[str]:
        """Yield what is wrong with the log, and why it is not to be written anew with what differs from it."""
        if self._log.damaged_bytes:
            yield f"{self._log.damaged_bytes} bytes of the log are damaged, first {self._log.damages[0]}"
        yield self._tally.unreadable.problem()
        if self._rewriter is not None:
            if not self._passed(streams):
                yield self._tally.why_not_rewritten()
            yield from self._untested.why_not_rewritten()


def _undated(data: bytes) -> bytes:
    """Return the request for a call of the recorded run as one that no process is too young for: a module begins in a
    replay when it was first heard, by the clock of who recorded that."""
    call = decode(SkillCall, data, CALLS)
    call.utime = 0
    return encode(call)
