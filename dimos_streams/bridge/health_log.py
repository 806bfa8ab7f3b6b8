"""The lines in the bridge's log that tell later when a module was not well, and why."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator

from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory

_LOOK_S = 1.0
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_log = LimitedLog(logging.getLogger(__name__), period_s=0.0)


class HealthLog:
    """Logs how modules are whenever that changes, in one line a second at most. A health in which only numbers are
    others, as for how long a module has been silent, is the same. Use from the bus's loop only."""

    def __init__(self, directory: ModuleDirectory) -> None:
        self._directory = directory
        self._known: dict[str, str] = {}
        """What was logged last of each module that is not well."""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(_LOOK_S)

    def look(self) -> None:
        """Log what has changed since the last look."""
        unwell = self._directory.unwell()
        if changes := list(self._changes(unwell)):
            _log.info("health of modules: %s", "; ".join(changes))
        self._known = {name: _kind(health) for name, health in unwell.items()}

    def _changes(self, unwell: dict[str, str]) -> Iterator[str]:
        for name, health in unwell.items():
            if self._known.get(name) != _kind(health):
                yield f"{name} {health}"
        for name in sorted(self._known.keys() - unwell.keys()):
            if self._directory.module(name) is not None:  # else it is forgotten, and nobody knows
                yield f"{name} ok"


def _kind(health: str) -> str:
    return _NUMBER.sub("0", health)
