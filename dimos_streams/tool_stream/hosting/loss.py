"""The end of calls that move the robot and that nobody answers for any more, and warnings about calls that do not
end.

A call is *disowned* when nobody has acknowledged it for too long, or when the bridge, which could not hear of it for
a while, has closed it meanwhile. A disowned call is cancelled. If its code does not end then, its stream is closed
nevertheless and its module's velocities are cut off: code of a closed call does not move the robot. Nor does code of
a call that an operator's stop of the robot has ended: its velocities are cut off, too, until it does end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dimos_streams import clock
from dimos_streams.common.secrets import redacted
from dimos_streams.common.waiting import where_it_waits
from dimos_streams.errors import HOW_TO_END
from dimos_streams.messages.geometry_msgs import Twist, TwistStamped
from dimos_streams.module import Module
from dimos_streams.streams import Out
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.hosting.running_call import RunningCall

CUT_OFF_AFTER_S = 0.5
"""The time, in seconds, that a moving call has to end when it is disowned, or when an operator has stopped the robot;
then its module's velocities are cut off."""
OVERDUE_AFTER_S = 2.0
"""The time, in seconds, that a call has to end after it was cancelled or its time limit has expired; then the log
says where it waits."""
_LONGEST_LOOK_S = 0.5
"""Maximum time, in seconds, that counts between two looks: a host that was held up itself has heard nothing
meanwhile."""
STALE_AFTER_S = 10.0
"""The longest standstill of a process, or sleep of its machine, in seconds, after which calls that move the robot go
on. After a longer one whoever ordered them may be gone, and the world may be another one."""
_VELOCITIES = (Twist, TwistStamped)


class LossWatch:
    """A watch over the running calls of one module. Its host asks it to ``look`` several times a second."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._looked = clock.monotonic()
        self._steady = clock.steady()
        """Time of the last look on a clock that goes on while the machine sleeps."""
        self._runaways: dict[str, None] = {}

    @property
    def runaway(self) -> str:
        """The id of a moving call whose code goes on though it must not; empty if there is none."""
        return next(iter(self._runaways), "")

    @property
    def consequence(self) -> str:
        """The consequence, in words, of a call that does not end; empty for a module that sends no velocities."""
        return ", so its velocities are cut off" if self._velocities() else ""

    def look(self, calls: Iterable[RunningCall]) -> None:
        """Disown calls that nobody acknowledges, cut off moving calls that do not end, and log all that do not
        end."""
        now, before = clock.monotonic(), self._looked
        elapsed = min(now - before, _LONGEST_LOOK_S)
        steady = clock.steady()
        still_s = steady - self._steady
        self._looked, self._steady = now, steady
        for running in tuple(calls):
            if running.is_to_end:
                self._await_end(running, elapsed)
            if running.disowned_at is None and (why := self._why_lost(running, before, elapsed, still_s)):
                running.disown(Outcome.LOST, why)
            if self._goes_on(running, now):
                self._cut_off(running)

    def ended(self, running: RunningCall) -> None:
        """Note that a call's task has ended; what it left in a thread may go on."""
        if not running.moves:
            return
        if running.work is not None and not running.work.done():
            self._cut_off(running)
            running.work.add_done_callback(lambda _: self._let_go(running.id))
        elif running.stands_since is not None:
            self._cut_off(running)  # whatever its skill did at its end
            self._let_go(running.id)

    def give_up(self, running: RunningCall, reason: str) -> None:
        """Close a call whose module ends and whose skill goes on: what it meets from then on is not its outcome."""
        self._name_overdue(running)
        running.close(Outcome.CANCELLED, running.cancel_reason or reason, {})
        if running.moves:
            self._cut_off(running)

    def _goes_on(self, running: RunningCall, now: float) -> bool:
        """Return whether a call goes on though it must not move the robot. While somebody answers for one that sends
        no velocities, as an arm's, they wait for its end."""
        if not running.moves or running.stands_since is None or now - running.stands_since <= CUT_OFF_AFTER_S:
            return False
        return running.disowned_at is not None or bool(self._velocities())

    def _await_end(self, running: RunningCall, elapsed: float) -> None:
        running.ending_s = 0.0 if running.ending_s is None else running.ending_s + elapsed
        if running.ending_s >= OVERDUE_AFTER_S:
            self._name_overdue(running)

    def _name_overdue(self, running: RunningCall) -> None:
        """Log, once, where the skill of a call waits that was to end, and have the call's close say so."""
        if running.overdue:
            return
        where = redacted(where_it_waits(running.task))
        running.overdue = f"; it did not end within {OVERDUE_AFTER_S:g} s, at {where}: {HOW_TO_END}"
        self._module.log.warning(
            "skill %r of module %r was to end, call %s%s",
            running.skill,
            self._module.name,
            running.id,
            running.overdue,
        )

    def _why_lost(self, running: RunningCall, looked: float, elapsed: float, still_s: float) -> str:
        """Return why a call counts as lost; empty if it does not."""
        since = running.answered_for_since()
        if since is None or not running.moves or running.on_loss == "continue":
            return ""
        if still_s > STALE_AFTER_S:
            return f"this process, or its machine, stood still for {still_s:.0f} s, so the robot was stopped"
        running.unanswered_s = 0.0 if since >= looked else running.unanswered_s + elapsed
        bound_s = self._module.context.loss_bound_s
        if running.unanswered_s <= bound_s:
            return ""
        return f"nobody has acknowledged this call for {bound_s:g} s, so it was ended and the robot was stopped"

    def _cut_off(self, running: RunningCall) -> None:
        """Command the module's velocities to be zero, and let nothing more of them through."""
        for output in self._velocities():
            output.mute()
        is_known = running.id in self._runaways
        self._runaways[running.id] = None
        if not running.writer.closed:
            if not is_known:
                self._module.log.error("call %s does not end%s", running.id, self.consequence)
            running.close_disowned(f"; it did not end within {CUT_OFF_AFTER_S:g} s{self.consequence}")

    def _let_go(self, call_id: str) -> None:
        self._runaways.pop(call_id, None)
        if not self._runaways:
            for output in self._velocities():
                output.unmute()

    def _velocities(self) -> list[Out[Any]]:
        specs = self._module.streams().values()
        moving = [spec.name for spec in specs if spec.direction == "out" and issubclass(spec.message, _VELOCITIES)]
        return [getattr(self._module, name) for name in moving]
