"""What must stay as it is while a run is attacked: its processes, their memory, their logs."""

from __future__ import annotations

import os
from pathlib import Path

from dimos_streams import clock
from tests.live.mission import Mission

_GROWTH = 30e6
_LOG_RATE = 64e3
"""Bytes a second, of all processes together."""


class Watch:
    """Remembers how a run stood when the watch began."""

    def __init__(self, mission: Mission, logs: Path) -> None:
        self._mission = mission
        self._logs = logs
        self._began = clock.monotonic()
        self._pids = {process.label: process.pid for process in mission.supervisor.processes()}
        self._rss = self._memory()
        self._log_bytes = self._logged()

    def seconds(self) -> float:
        return clock.monotonic() - self._began

    def check(self) -> None:
        """No process ended or hung, none grew much, and what they logged is bounded and has no tracebacks."""
        processes = self._mission.supervisor.processes()
        assert {process.label: process.pid for process in processes} == self._pids, self._tails()
        assert "Traceback" not in self._all_logs(), self._tails()
        assert self._logged() - self._log_bytes <= _LOG_RATE * (1 + self.seconds())
        assert max(self._grown().values()) <= _GROWTH, self._grown()

    def __str__(self) -> str:
        grown = ", ".join(f"{label} {bytes / 1e6:+.0f} MB" for label, bytes in self._grown().items())
        return f"{grown}; {self._logged() - self._log_bytes} bytes logged"

    def _grown(self) -> dict[str, float]:
        now = self._memory()
        return {label: now[label] - self._rss[label] for label in now if label in self._rss}

    def _memory(self) -> dict[str, float]:
        found = {}
        for process in self._mission.supervisor.processes():
            if process.pid is not None:
                pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
                found[process.label] = float(pages * os.sysconf("SC_PAGESIZE"))
        return found

    def _logged(self) -> int:
        return sum(path.stat().st_size for path in self._logs.iterdir())

    def _all_logs(self) -> str:
        return "\n".join(path.read_text(errors="replace") for path in self._logs.iterdir())

    def _tails(self) -> str:
        return "\n".join(f"{path.name}: {path.read_text(errors='replace')[-3000:]}" for path in self._logs.iterdir())


class Processors:
    """Who has used the processors since it was made: the run, and everybody on the machine together."""

    def __init__(self, mission: Mission) -> None:
        self._pids = [process.pid for process in mission.supervisor.processes()]
        self._began = self._now()

    def __str__(self) -> str:
        run, busy, total = (now - then for now, then in zip(self._now(), self._began, strict=True))
        return f"processors busy {busy / total:.0%}, {run / total:.0%} by the run"

    def _now(self) -> tuple[float, float, float]:
        run = 0
        for pid in self._pids:
            times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
            run += sum(map(int, times))
        user, nice, system, idle, waiting, *more = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:])
        busy = user + nice + system + sum(more)
        return run, busy, busy + idle + waiting
