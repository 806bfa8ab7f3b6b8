"""Storages of hubs, and what goes into them."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
from collections.abc import Iterator
from random import Random
from typing import Any

from dimos_streams.common.json.writing import json_text
from dimos_streams.hub.storage.engines.engine import Transaction
from dimos_streams.hub.storage.rows import BatchEntry, DueCommand, NewCommand, RobotBatch
from dimos_streams.hub.storage.storage import HubStorage, open_engine
from dimos_streams.journal.query import Query
from dimos_streams.tool_stream.event import EventType, ToolEvent

PARTITION = 50
ALL = 10**9


@contextlib.contextmanager
def opened(url: str) -> Iterator[HubStorage]:
    """A storage, closed at the end."""
    storage = HubStorage(open_engine(url, partition=PARTITION))
    storage.open()
    try:
        yield storage
    finally:
        storage.close()


def clock_owner(storage: HubStorage) -> type[Transaction]:
    """The class whose ``now`` is the clock of a storage's database."""
    with storage.engine.transaction() as db:
        return type(db)


def command(key: str = "k", *, path: str = "/calls", expires_in_s: float = 60.0, **fields: Any) -> NewCommand:
    """A command for the robot r1."""
    command = NewCommand(
        robot="r1",
        key=key,
        asked_by="me",
        role="operator",
        method="POST",
        path=path,
        body="{}",
        expires_in_s=expires_in_s,
    )
    return dataclasses.replace(command, **fields)


def entry(offset: int, text: str = "", *, call: str = "c1", type: EventType = "update", **data: object) -> BatchEntry:
    event = ToolEvent(
        utime=offset, call_id=call, seq=offset, type=type, module="m", skill="s", caller="me", text=text, data=data
    ).to_dict()  # fmt: skip
    return BatchEntry(offset, offset, call, "me", type, json_text(event), event)


def gap(first: int, last: int) -> BatchEntry:
    return entry(last, "trimmed", call="", type="gap")._replace(first=first)


def batch(*entries: BatchEntry, robot: str = "r1", journal: str = "journal-1") -> RobotBatch:
    return RobotBatch(robot, journal, entries)


def noise(seed: int, size: int = 8000) -> str:
    """A text that no database makes shorter."""
    return base64.b64encode(Random(seed).randbytes(size * 3 // 4)).decode()


def numbered(first: int, last: int) -> list[BatchEntry]:
    return [entry(offset) for offset in range(first, last + 1)]


def seqs(storage: HubStorage, **query: str) -> list[int]:
    found, after = [], 0
    while True:
        read = storage.read(Query(after, **query), 7, ALL)
        found += [each.offset for each in read.entries]
        if read.upto == after or read.upto >= storage.bounds().last:
            return found
        after = read.upto


def due(storage: HubStorage, stream: str) -> list[DueCommand]:
    """What a robot's new stream is to hand on, or one that it has already."""
    storage.robots.connect("r1", stream, "process", 60)
    return storage.commands.due({"r1": stream})
