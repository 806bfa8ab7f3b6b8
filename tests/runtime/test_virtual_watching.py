"""A run in virtual time can be watched over HTTP, and is the same run."""

from __future__ import annotations

import http.client
import json
import threading
from dataclasses import dataclass, field

import pytest

from dimos_streams.clock import run_virtual
from tests.cli.machine import free_port
from tests.runtime.virtual_mission import mission

SECONDS = 8.0


@dataclass
class Onlooker:
    """A client in a thread of its own, as fast and as curious as it can be."""

    port: int
    events: list[str] = field(default_factory=list)
    statuses: set[int] = field(default_factory=set)
    refused: str = ""

    def look(self) -> None:
        """Wait for the server, try to command, ask for everything, read all events to the end of the run."""
        stream = self._connected()
        self.refused = self._ask("POST", "/calls", json.dumps({"skill": "say", "arguments": {"text": "stop"}}))
        stream.request("GET", "/tool_streams?from=1")
        response = stream.getresponse()
        for path in ("/healthz", "/skills", "/modules", "/calls", "/metrics"):
            self._ask("GET", path)
        try:
            for line in response:
                if line.startswith(b"data: "):
                    self.events.append(json.loads(line.removeprefix(b"data: "))["type"])
        except (OSError, http.client.HTTPException):  # the run is over
            return
        finally:
            response.close()
            stream.close()

    def _connected(self) -> http.client.HTTPConnection:
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
            try:
                connection.connect()
            except ConnectionRefusedError:
                continue
            return connection

    def _ask(self, method: str, path: str, body: str | None = None) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read().decode()
        self.statuses.add(response.status)
        connection.close()
        return text


@pytest.mark.slow
def test_whoever_watches_changes_nothing() -> None:
    alone = run_virtual(mission(7, SECONDS), limit_s=60.0)
    onlooker = Onlooker(free_port())
    thread = threading.Thread(target=onlooker.look)
    thread.start()
    watched = run_virtual(mission(7, SECONDS, {"bridge.http": True, "bridge.port": onlooker.port}), limit_s=60.0)
    thread.join(20)
    assert not thread.is_alive()
    assert watched.channels == alone.channels
    assert watched.digest == alone.digest
    assert onlooker.statuses == {200, 403}
    assert "it can be watched but not be commanded" in onlooker.refused
    assert {"open", "update", "close"} <= set(onlooker.events)
