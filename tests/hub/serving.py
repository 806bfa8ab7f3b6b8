"""Hubs that serve real HTTP from a loop in a thread, and robots that speak their protocol from the test's thread."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import threading
import time
from collections.abc import Collection, Iterator
from typing import Any

import requests

from dimos_streams.common.json.writing import json_text
from dimos_streams.common.process.live_loop import new_live_loop
from dimos_streams.fleet.batches import ShippedGap, encoded_batch, encoded_event, encoded_gap
from dimos_streams.hub.process import FleetHub
from dimos_streams.hub.settings import HubSettings
from dimos_streams.hub.storage.storage import HubStorage, open_engine
from dimos_streams.tool_stream.event import EventType, ToolEvent

TIMEOUT_S = 30.0


class ServedHub:
    """A hub; everything may be used from the test's thread."""

    def __init__(self, hub: FleetHub) -> None:
        self._hub = hub

    @property
    def url(self) -> str:
        return self._hub.url

    def get(self, path: str, **kwargs: Any) -> requests.Response:
        return requests.get(self.url + path, timeout=TIMEOUT_S, **kwargs)

    def post(self, path: str, body: Any = None, **kwargs: Any) -> requests.Response:
        return requests.post(self.url + path, json=body, timeout=TIMEOUT_S, **kwargs)

    def events(self, count: int, query: str = "?from=1", **headers: str) -> list[tuple[int, dict[str, Any]]]:
        """So many events of its stream, with their ids."""
        found: list[tuple[int, dict[str, Any]]] = []
        with requests.get(
            f"{self.url}/tool_streams{query}", headers=headers, stream=True, timeout=TIMEOUT_S
        ) as response:
            assert response.status_code == 200, response.text
            for kind, id, data in server_sent(response):
                if kind == "tool_stream":
                    found.append((int(id), json.loads(data)))
                if len(found) == count:
                    break
        return found


def server_sent(response: requests.Response) -> Iterator[tuple[str, str, str]]:
    """The server-sent events of a response: type, id and data."""
    fields: dict[str, str] = {}
    for line in response.iter_lines(chunk_size=1, decode_unicode=True):
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        else:
            yield fields.get("event", ""), fields.get("id", ""), fields.get("data", "")
            fields = {}


@contextlib.contextmanager
def served_hub(database: str, **settings: Any) -> Iterator[ServedHub]:
    """A hub on a free port."""
    hub = FleetHub(HubSettings(database=database, **{"port": 0, **settings}))
    loop = new_live_loop()
    thread = threading.Thread(target=loop.run_forever, name="hub loop")
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(hub.start(), loop).result(TIMEOUT_S)
        try:
            yield ServedHub(hub)
        finally:
            asyncio.run_coroutine_threadsafe(hub.stop(), loop).result(TIMEOUT_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(TIMEOUT_S)
        loop.close()


def added(database: str, *robots: str) -> dict[str, str]:
    """Tokens of new robots."""
    storage = HubStorage(open_engine(database))
    storage.open()
    try:
        return {robot: storage.robots.add(robot) for robot in robots}
    finally:
        storage.close()


def event(
    number: int, text: str = "", type: EventType = "update", call_id: str = "c1", *, skill: str = "s", **data: Any
) -> bytes:
    made = ToolEvent(
        utime=number,
        call_id=call_id,
        seq=number,
        type=type,
        module="m",
        skill=skill,
        caller="me",
        text=text,
        data=data,
    )
    return json_text(made.to_dict()).encode()


class Robot:
    """A robot, as far as a hub sees it."""

    def __init__(self, name: str, token: str, journal: str = "journal-1") -> None:
        self.name, self.journal = name, journal
        self.process = secrets.token_urlsafe(16)
        self.headers = {"Authorization": f"Bearer {token}"}

    def path(self, hub: ServedHub, what: str) -> str:
        return f"{hub.url}/fleet/robots/{self.name}/{what}"

    def ship(self, hub: ServedHub, *entries: bytes, **head: Any) -> requests.Response:
        """Send a batch of entries."""
        given = {"journal": self.journal, "version": "test", "sent_utime": time.time_ns() // 1000, **head}
        protocol = given.pop("protocol", None)
        body = encoded_batch(entries=entries, **given)
        if protocol is not None:
            body = body.replace(b'"protocol":1', b'"protocol":%d' % protocol)
        return self.send(hub, "batches", body)

    def send(self, hub: ServedHub, what: str, body: bytes) -> requests.Response:
        headers = {**self.headers, "Content-Type": "application/json"}
        return requests.post(self.path(hub, what), data=body, headers=headers, timeout=TIMEOUT_S)

    def ship_events(self, hub: ServedHub, first: int, last: int) -> requests.Response:
        return self.ship(hub, *(encoded_event(n, event(n)) for n in range(first, last + 1)))

    def position(self, hub: ServedHub) -> requests.Response:
        params = {"journal": self.journal}
        return requests.get(self.path(hub, "position"), params=params, headers=self.headers, timeout=TIMEOUT_S)

    def report(self, hub: ServedHub, *skills: str, motions: Collection[str] = (), **fields: Any) -> requests.Response:
        described = [
            {
                "name": skill,
                "description": "It does.",
                "parameters": {"type": "object"},
                "module": "m",
                "available": True,
                "motion": skill in motions,
            }
            for skill in skills
        ]
        body = {
            "protocol": 1,
            "version": "test",
            "sent_utime": time.time_ns() // 1000,
            "journal": self.journal,
            "last_offset": 0,
            "status": "ok",
            "skills": described,
            **fields,
        }
        return self.send(hub, "reports", json.dumps(body).encode())

    @contextlib.contextmanager
    def commands(self, hub: ServedHub) -> Iterator[Iterator[tuple[str, dict[str, Any]]]]:
        """Its stream of commands: types and data."""
        with requests.get(
            self.path(hub, "commands"),
            params={"stream": secrets.token_urlsafe(16), "process": self.process},
            headers=self.headers,
            stream=True,
            timeout=TIMEOUT_S,
        ) as response:
            assert response.status_code == 200, response.text
            found = ((kind, json.loads(data)) for kind, _, data in server_sent(response) if kind)
            assert next(found)[0] == "hello"
            yield found

    def answer(
        self, hub: ServedHub, id: int, status: int = 200, body: Any = None, **fields: Any
    ) -> requests.Response:
        answer = {"protocol": 1, "id": id, "outcome": "answered", "status": status, "body": body, **fields}
        return self.send(hub, "answers", json.dumps(answer).encode())


def gap(first: int, last: int) -> bytes:
    return encoded_gap(ShippedGap(offset=first, to_offset=last, gap="trimmed"))


@contextlib.contextmanager
def opened_storage(database: str) -> Iterator[HubStorage]:
    """The storage of a hub that is not served."""
    storage = HubStorage(open_engine(database))
    try:
        yield storage
    finally:
        storage.close()
