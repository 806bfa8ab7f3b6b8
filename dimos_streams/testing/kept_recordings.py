"""The recordings of failed tests, kept for people with a report and the command that replays them."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from dimos_streams.blueprint.kinds import is_replayable

if TYPE_CHECKING:
    from dimos_streams.testing.mission import MissionRun


def keep_recording(run: MissionRun, folder: Path, test: str, number: int) -> str:
    """Copy the recording of a test's run to where it is kept, with a report; return a text that says what to do with
    it. ``number`` is 0 for the first run of the test."""
    if not run.recording.exists():
        return "the run did not get so far as to record anything"
    name = re.sub(r"[^\w.-]+", "_", test)
    path = folder / (f"{name}.lcmlog" if number == 0 else f"{name}-{number}.lcmlog")
    if trouble := copy_recording(run.recording, path):
        return trouble
    known = run.blueprint.modules
    said = dict.fromkeys(event.module for event in run.events)
    modules = [name for name in said if name in known and is_replayable(known[name])]
    quoted = shlex.quote(str(path))
    lines = [f"the run is recorded in {path}", f"what is in it:  dimos-streams recording info {quoted}"]
    if modules:
        lines.append(f"replay it:      dimos-streams replay {quoted} --modules {','.join(modules)}")
    return "\n".join((_with_report(path), *lines))


def copy_recording(recording: Path, to: Path) -> str:
    """Copy a recording; return why it could not be copied, empty if it was. What is raised while a test is reported
    would end the whole session."""
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(recording, to)
    except OSError as error:
        return f"the recording can't be written to {to}: {error.strerror or error} ({error.filename})"
    return ""


def _with_report(recording: Path) -> str:
    """Write the report of a recording beside it; return where it is, or why there is none. An error does not matter
    here: the test's own failure is what counts."""
    from dimos_streams.recording.reader import LogReader
    from dimos_streams.recording.report.write import write_report

    page = recording.with_suffix(".html")
    try:
        with LogReader(recording) as log:
            write_report([log], page)
    except Exception as error:
        return f"there is no report of the run: {error!r}"
    return f"what happened is shown in {page}"
