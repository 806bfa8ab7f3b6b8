"""The entry of one module in a directory."""

from __future__ import annotations

from dataclasses import dataclass, field

from dimos_streams import clock
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.liveness.heartbeat import ENDED, ORDERLY, end_of_process, process_ended
from dimos_streams.tool_stream.liveness.instance_report import InstanceReport
from dimos_streams.tool_stream.liveness.instances import ESTABLISHED_S, Instance, Instances, listed
from dimos_streams.tool_stream.liveness.module_view import ALIVE_S, ModuleView

_HUNG = "hung: "
_SILENT_S = 0.5
"""The time, in seconds, after which others may speak for a module: two heartbeats. Before, it speaks for itself."""
_REPORT_S = 1.5
"""The time, in seconds, for which somebody else's word about a module holds."""
_MAX_CONTRADICTION = 500
_MAX_ENDS = 3
DEPARTED_S = 0.5
"""The time, in seconds, after which an instance whose token has vanished, and that is not heard, has gone: two
heartbeats."""
_UNDER_WAY_S = 0.1
"""Maximum time, in seconds, after a token vanished at which a heartbeat that was sent before may be taken."""


@dataclass(slots=True)
class ModuleEntry:
    """One module, as its heartbeats and other processes' reports describe it.

    Each instance that is believed has a report of its own. The established one's is kept while another one speaks:
    when it takes its place back, it offers at once what it offered before.
    """

    since: float
    """The time on the loop's clock at which a module of this name was first heard."""
    heard: float
    instances: Instances = field(default_factory=Instances)
    reported_health: str = ""
    """The health that somebody else reported of it."""
    reported_at: float = float("-inf")
    _reports: dict[str, InstanceReport] = field(default_factory=dict)
    """The reports of the active instance and the established one, by their ids."""
    _ends: dict[str, str] = field(default_factory=dict)
    """The ends of the processes of instances that are not heard any more, by their ids, as somebody else said."""

    @property
    def bytes(self) -> int:
        """The size of what its instances have reported, as JSON."""
        return sum(report.bytes for report in self._reports.values())

    @property
    def current(self) -> InstanceReport:
        """The report of the active instance."""
        active = self.instances.active
        assert active is not None, "an entry begins with a heartbeat"
        return self._reports[active.id]

    def turn_to_active(self) -> int:
        """Have a report of the instance that is active now, and forget those that are neither active nor
        established any more. Return by how many ``bytes`` it has grown."""
        active, established = self.instances.active, self.instances.established
        assert active is not None, "it was heard just now"
        if len(self._reports) == 1 and active.id in self._reports:
            return 0
        before = self.bytes
        if active.id not in self._reports:
            reports = self._reports
            newest = next(reversed(reports.values()), None)
            former = newest if established is None else reports.get(established.id)
            reports[active.id] = InstanceReport.after(former)
        if len(self._reports) > 1:
            kept = {active.id} if established is None else {active.id, established.id}
            self._reports = {id: report for id, report in self._reports.items() if id in kept}
        return self.bytes - before

    def report_of(self, instance: str) -> InstanceReport | None:
        """Return the report of an instance, or None if it is not believed."""
        return self._reports.get(instance)

    @property
    def skills(self) -> tuple[SkillInfo, ...]:
        """The skills that it offers: the active instance's, and besides those of an instance that was established
        before, until the active one has spoken for long enough to be no passer-by."""
        current, established = self.current, self._unheard()
        if established is None:
            return current.skills
        names = {info.name for info in established.skills}
        return (*established.skills, *(info for info in current.skills if info.name not in names))

    def _unheard(self) -> InstanceReport | None:
        """Return the report of the established instance while another one has its place for a moment, else None."""
        established = self.instances.established
        report = None if established is None else self._reports.get(established.id)
        if report is None or report is self.current or report.token_lost_at > float("-inf"):
            return None
        return report if clock.monotonic() - self.instances.spoken_since < ESTABLISHED_S else None

    def offers(self, skill: str, instance: str) -> bool:
        """Return whether an instance that is believed offers a skill of that public name."""
        report = self._reports.get(instance)
        skills = () if report is None else self.skills if report is self.current else report.skills
        return any(info.name == skill for info in skills)

    def view(self, name: str, now: float) -> ModuleView:
        """Return the view of the module at a moment of ``clock.monotonic``."""
        active = self.instances.active
        assert active is not None, "an entry begins with a heartbeat"
        current = self.current
        return ModuleView(
            name,
            active.id,
            active.pid,
            self.health_at(now),
            now - self.heard,
            self.skills,
            current.state(),
            host=active.host,
            started_utime=active.started_utime,
            introduced=current.skills_version is not None,
            rivals=self.rivals(now),
            departed=self.departed(now),
            since=self.since,
        )

    def token(self, instance: str, *, is_there: bool) -> None:
        """Take note of an instance's token."""
        report = self._reports.get(instance)
        if report is not None:
            report.token_lost_at = float("-inf") if is_there else clock.monotonic()

    def reported(self, health: str, pid: int) -> None:
        """Take somebody else's word about the module, or about that instance of it which is a process's."""
        how, instance = end_of_process(health), self.instances.of_process(pid)
        if how == ORDERLY and self.current.health == ENDED:
            return  # it has said so itself
        if how is None and not health.startswith(_HUNG):
            return  # that it is well only it can say
        self.reported_health, self.reported_at = health, clock.monotonic()
        if how is not None and instance is not None:
            self._ends[instance.id] = how
            while len(self._ends) > _MAX_ENDS:
                del self._ends[next(iter(self._ends))]

    def lives(self, instance: str) -> None:
        """Note that an instance is heard, whatever was said of its end."""
        self._ends.pop(instance, None)

    def how_ended(self, instance: str) -> str:
        """Return how the process of an instance has ended, if somebody has said it, else an empty text."""
        return self._ends.get(instance, "")

    def excuse(self, break_s: float) -> None:
        """Do not count silence of the last ``break_s`` seconds, in which the owner of this entry was held up."""
        self.heard += break_s
        self.reported_at += break_s
        self.instances.excuse(break_s)
        for report in self._reports.values():
            report.token_lost_at += break_s

    def departed(self, now: float) -> bool:
        """Return whether the active instance has ended: its links have, and no heartbeat contradicts."""
        lost_at = self.current.token_lost_at
        return self.heard <= lost_at + _UNDER_WAY_S and now - lost_at >= DEPARTED_S

    def rivals(self, now: float) -> tuple[Instance, ...]:
        """Return the instances that run beside each other under its name, eldest first; none, or at least two."""
        return tuple(self.instances.side_by_side(now, ALIVE_S))

    def health_at(self, now: float) -> str:
        """Return ``ModuleView.health`` at a moment of ``clock.monotonic``."""
        if rivals := self.rivals(now):
            return f"{len(rivals)} instances run under this name: {listed(rivals)}"[:_MAX_CONTRADICTION]
        age = now - self.heard
        if age > _SILENT_S and self.reported_at > self.heard and now - self.reported_at <= _REPORT_S:
            return self.reported_health
        if age > _SILENT_S and (how := self.how_ended(self.instances.active.id if self.instances.active else "")):
            return process_ended(how)
        if self.departed(now):
            return f"gone: its links ended {now - self.current.token_lost_at:.1f} s ago"
        return self.current.health if age <= ALIVE_S else f"gone: silent for {age:.1f} s"
