"""A run in virtual time can be watched over HTTP, and is the same run."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from dataclasses import dataclass, field

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from dimos_streams.clock import run_virtual
from tests.ports import free_port
from tests.runtime.virtual_mission import mission

SECONDS = 8.0


@dataclass
class Onlooker:
    """A client in two threads of its own, as fast and as curious as it can be."""

    port: int
    events: list[str] = field(default_factory=list)
    statuses: set[int] = field(default_factory=set)
    refused: str = ""
    seen: set[str] = field(default_factory=set)
    """The kinds of topics."""
    has_asked: bool = False
    has_chosen: bool = False

    def is_there(self) -> bool:
        """Whether it has asked for everything, and has said that it watches all topics."""
        return self.has_asked and self.has_chosen

    def look(self) -> None:
        """Wait for the server, try to command, ask for everything, read all events to the end of the run."""
        stream = self._connected()
        self.refused = self._ask("POST", "/calls", json.dumps({"skill": "say", "arguments": {"text": "stop"}}))
        stream.request("GET", "/tool_streams?from=1")
        response = stream.getresponse()
        for path in ("/healthz", "/skills", "/modules", "/calls", "/metrics"):
            self._ask("GET", path)
        self.has_asked = True
        try:
            for line in response:
                if line.startswith(b"data: "):
                    self.events.append(json.loads(line.removeprefix(b"data: "))["type"])
        except (OSError, http.client.HTTPException):  # the run is over
            return
        finally:
            response.close()
            stream.close()

    def look_at_robot(self) -> None:
        """Watch all topics, acknowledging each frame at once, to the end of the run."""
        self._connected().close()
        with pytest.raises(InvalidStatus), connect(f"ws://127.0.0.1:{self.port}/monitor"):
            pass
        with (
            contextlib.suppress(ConnectionClosed),  # the run is over
            connect(f"ws://127.0.0.1:{self.port}/live", max_size=None) as socket,
        ):
            topics = [each["topic"] for each in json.loads(socket.recv())["topics"]]
            socket.send(json.dumps({"watch": {topic: {} for topic in topics}}))
            self.has_chosen = True
            for message in socket:
                if isinstance(message, bytes):
                    header = json.loads(message[4 : 4 + int.from_bytes(message[:4], "little")])
                    self.seen.add(header["kind"])
                    socket.send(json.dumps({"seen": header["topic"]}))

    def _connected(self) -> http.client.HTTPConnection:
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            try:
                connection.connect()
            except ConnectionRefusedError:
                time.sleep(0.005)
                continue
            return connection

    def _ask(self, method: str, path: str, body: str | None = None) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
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
    threads = [threading.Thread(target=look, daemon=True) for look in (onlooker.look, onlooker.look_at_robot)]
    for thread in threads:
        thread.start()
    settings = {"bridge.http": True, "bridge.port": onlooker.port}
    watched = run_virtual(mission(7, SECONDS, settings, watched=onlooker.is_there), limit_s=60.0)
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert watched.channels == alone.channels
    assert watched.digest == alone.digest
    assert onlooker.statuses == {200, 403}
    assert "it can be watched but not be commanded" in onlooker.refused
    assert {"open", "update", "close"} <= set(onlooker.events)
    assert {"picture", "scan", "odometry", "detections"} <= onlooker.seen
