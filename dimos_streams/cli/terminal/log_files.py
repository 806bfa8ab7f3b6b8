"""Reads the log files of a run's processes."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dimos_streams.cli.terminal.output import note, write
from dimos_streams.errors import UserError, suggest
from dimos_streams.runtime.registry import runs, state_dir

_LOOK_EVERY_S = 0.2


def find_run_dir(selector: str | None) -> Path:
    """The directory of a run, living or ended: by id or blueprint, or of the newest. Raises ``UserError``."""
    if selector is not None:
        for run in runs():
            if selector in (run.run_id, run.blueprint, str(run.pid)):
                return run.run_dir
    directories = sorted((state_dir() / "runs").glob("*-*-*"), reverse=True)
    if not directories:
        raise UserError("there are no runs yet; `dimos-streams run BLUEPRINT` starts one")
    if selector is None:
        return directories[0]
    for directory in directories:
        run_id = directory.name.partition("-")[2]
        if selector in (run_id, run_id.rpartition("-")[0]):
            return directory
    ids = [directory.name.partition("-")[2] for directory in directories]
    raise UserError(f"no run is called {selector!r}{suggest(selector, ids)}")


class LogReader:
    """Prints the log files of one run, each line with its process's name if there are several."""

    def __init__(self, run_dir: Path, process: str | None) -> None:
        """Raises ``UserError`` if the process named has no log."""
        self._folder = run_dir / "logs"
        self._process = process
        self._offsets: dict[Path, int] = {}
        self._run_dir = run_dir
        names = [path.stem for path in self._paths(everything=True)]
        if process is not None and process.replace("/", ".") not in names:
            known = ", ".join(names) or "none"
            raise UserError(f"no process {process!r} has a log{suggest(process, names)} (processes: {known})")
        if not names:
            note(f"there are no logs in {self._folder}")

    def write_new(self) -> None:
        """Print what has been written since the last time, in the order of the lines' times."""
        lines = [(line, path.stem) for path in self._paths() for line in self._new_lines(path)]
        if self._process is None:
            # Lines begin with their time. What has none belongs to the line before it.
            lines = _by_time(lines)
        width = max((len(path.stem) for path in self._paths()), default=0)
        for line, name in lines:
            write(line if self._process is not None else f"{name:{width}}  {line}")

    async def follow(self) -> None:
        """Go on printing until the run has ended."""
        while True:
            living = any(run.run_dir == self._run_dir for run in runs())
            self.write_new()
            if not living:
                return
            await asyncio.sleep(_LOOK_EVERY_S)

    def _paths(self, *, everything: bool = False) -> list[Path]:
        paths = sorted(self._folder.glob("*.log"))
        if self._process is None or everything:
            return paths
        return [path for path in paths if path.stem == self._process.replace("/", ".")]

    def _new_lines(self, path: Path) -> list[str]:
        with path.open("rb") as file:
            file.seek(self._offsets.get(path, 0))
            data = file.read()
        complete = data.rpartition(b"\n")[0]  # the rest of a line that is being written comes next time
        self._offsets[path] = self._offsets.get(path, 0) + (len(complete) + 1 if b"\n" in data else 0)
        return complete.decode(errors="replace").split("\n") if complete else []


def _by_time(lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    keyed = []
    time = ""
    previous = ""
    for line, name in lines:
        if name != previous:
            time, previous = "", name
        if line[:4].isdigit() and line[4:5] == "-":
            time = line[:23]
        keyed.append((time, line, name))
    return [(line, name) for _, line, name in sorted(keyed, key=lambda item: item[0])]
