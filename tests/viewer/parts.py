"""Recordings that are open to be looked at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dimos_streams.bridge.journal.journal import Journal
from dimos_streams.bridge.monitor.collector import Collector
from dimos_streams.operator.messages.run import MonitorSnapshot
from dimos_streams.recording.reader import LogReader
from dimos_streams.recording.summary import first_metadata
from dimos_streams.recording.tape import Tape
from dimos_streams.viewer.index import Index
from dimos_streams.viewer.recording import EVERYTHING
from dimos_streams.viewer.stage import Stage


@contextmanager
def indexed(*paths: Path) -> Iterator[Index]:
    """The index of logs, with its journal in memory."""
    with ExitStack() as stack:
        logs = [stack.enter_context(LogReader(path)) for path in paths]
        journal = Journal(None, EVERYTHING)
        journal.open()
        stack.callback(journal.close)
        index = Index(Tape(logs), journal, first_metadata(logs[0]))
        index.read()
        yield index


def state_at(stage: Stage, utime: int) -> MonitorSnapshot:
    """What is shown at a moment."""
    stage.show(utime)
    return Collector(stage.world).snapshot(0)
