"""The logs of a part on another machine, piece by piece through the bridge."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from dimos_streams.cli.bridge_client.connection import BridgeAddress
from dimos_streams.cli.bridge_client.machine_parts import ask_part
from dimos_streams.cli.terminal.log_files import LineReader, LogLine
from dimos_streams.errors import UserError, suggest
from dimos_streams.runtime.log_names import log_name

_ASK_EVERY_S = 1.0
_NEWEST = -1


class MachineLogs:
    """A reader of the newest lines of a part's logs, and of what comes after them."""

    def __init__(self, address: BridgeAddress, machine: str, process: str | None) -> None:
        self._address, self._machine, self._process = address, machine, process
        self._offsets: dict[str, int] = {}
        self._readers: dict[str, LineReader] = {}

    async def lines(self, *, follow: bool) -> AsyncIterator[list[LogLine]]:
        """Yield new lines in the order of their times; with ``follow`` for as long as the part answers.

        Raises as ``ask_part`` does, and ``UserError`` for a process that the part does not have.
        """
        if self._process is not None:
            known = (await self._ask())["processes"]
            if log_name(self._process) not in known:
                raise UserError(
                    f"machine {self._machine!r} has no log of a process {self._process!r}"
                    f"{suggest(self._process, known)} ({', '.join(known) or 'none has logged'})"
                )
        while True:
            names = [log_name(self._process)] if self._process is not None else (await self._ask())["processes"]
            lines = [line for name in names for line in await self._new_lines(name)]
            yield sorted(lines, key=lambda line: line.utime or 0)
            if not follow:
                return
            await asyncio.sleep(_ASK_EVERY_S)

    async def _new_lines(self, process: str) -> list[LogLine]:
        reader = self._readers.setdefault(process, LineReader(process))
        found: list[LogLine] = []
        while True:
            chunk = await self._ask(process=process, offset=self._offsets.get(process, _NEWEST))
            self._offsets[process] = chunk["next_offset"]
            found += reader.read(chunk["text"])
            if not chunk["more"]:
                return found

    async def _ask(self, **arguments: Any) -> Any:
        return await ask_part(self._address, self._machine, "logs", arguments)
