"""Clients of the monitor: what they were sent, and the state that it adds up to."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from dimos_streams.bridge.monitor.view import numbered
from dimos_streams.bridge.monitor.watcher import Watcher


class Client:
    """The state of a console: all messages, and the state that they add up to. Checks what holds for every client."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.state: dict[str, Any] = {}
        self.numbers: dict[str, int] = {}

    def take(self, text: str | bytes) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(text)
        assert message["seq"] == len(self.messages) + 1
        assert message["type"] == "snapshot" or self.messages, "a snapshot comes first"
        before = self.state
        if message["type"] == "snapshot":
            self.state = message["snapshot"]
        elif message["type"] == "change":
            assert message["change"], "something has changed"
            self.state = before | message["change"]
            assert self.state != before, "no state comes twice"
        elif message["type"] == "event":
            event = message["event"]
            self.numbers[event["agent"]] = event["number"]
        self.messages.append(message)
        return message

    def of(self, type: str) -> list[dict[str, Any]]:
        return [message for message in self.messages if message["type"] == type]

    def agent(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.state.get("agents", {}).get(name, {})
        return found


class Console(Client):
    """A client that reads a watcher as fast as it can."""

    def __init__(self, watcher: Watcher) -> None:
        super().__init__()
        self.watcher = watcher
        self.task = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        while (message := await self.watcher.next()) is not None:
            self.take(numbered(len(self.messages) + 1, message))

    async def close(self) -> None:
        self.watcher.close()
        await self.task
