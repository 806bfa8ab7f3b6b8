"""A watch over what must stay as it is while a run is attacked: its processes, their memory, their logs."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

from dimos_streams import clock
from dimos_streams.bus.lcm.overflow import thrown_away
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
        self._thrown_away = thrown_away() or 0

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
        dropped = (thrown_away() or 0) - self._thrown_away
        return f"{grown}; {self._logged() - self._log_bytes} bytes logged; {dropped} datagrams dropped by the kernel"

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
    """The users of the processors since it was made: each process of the run, who attacks it, and everybody on the
    machine together."""

    def __init__(self, mission: Mission, **others: int) -> None:
        """``others`` are ids of processes by name."""
        run = {process.label: process.pid for process in mission.supervisor.processes() if process.pid is not None}
        self._pids = {**run, "this test": os.getpid(), **others}
        self._last: dict[str, int] = {}
        self._began, self._before = clock.monotonic(), self._used()
        self._busy = self._machine()

    async def watch(self, until: asyncio.Event) -> None:
        """Look again and again: of who has ended nothing can be known any more."""
        while not until.is_set():
            self._used()
            await asyncio.sleep(0.1)

    def __str__(self) -> str:
        elapsed, tick = clock.monotonic() - self._began, os.sysconf("SC_CLK_TCK")
        used = {name: (now - self._before[name]) / tick / elapsed for name, now in self._used().items()}
        busy, total = (now - then for now, then in zip(self._machine(), self._busy, strict=True))
        shares = ", ".join(f"{name} {share:.0%}" for name, share in used.items())
        return f"{os.cpu_count()} processors busy {busy / total:.0%}; of one processor: {shares}"

    def _used(self) -> dict[str, int]:
        """In ticks; who has ended meanwhile has used nothing since the last look."""
        for name, pid in self._pids.items():
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                self._last[name] = sum(map(int, fields[11:13]))
        return dict(self._last)

    def _machine(self) -> tuple[float, float]:
        user, nice, system, idle, waiting, *more = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:])
        busy = user + nice + system + sum(more)
        return busy, busy + idle + waiting
