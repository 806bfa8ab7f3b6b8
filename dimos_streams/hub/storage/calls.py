"""Calls of all robots, folded from their events as these are stored."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dimos_streams.bridge.calls.call_pages import WantedState
from dimos_streams.bridge.calls.call_state import CLOSED, CallState
from dimos_streams.hub.storage.engine import Engine, Transaction
from dimos_streams.hub.storage.rows import BatchEntry, RobotCallRow
from dimos_streams.tool_stream.event import ToolEvent

_AT_ONCE = 200
"""Maximum number of calls that one statement asks for."""


class CallTable:
    """See ``HubStorage``."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def find(self, call_id: str) -> list[RobotCallRow]:
        """The calls with an id: one, unless several robots have chosen the same."""
        return self._rows("WHERE call_id = ?", call_id)

    def newest(
        self, limit: int, *, robot: str | None, state: WantedState | None, before: int | None
    ) -> list[RobotCallRow]:
        """The newest calls, newest first, of one robot or state if wanted, whose first event is before a number."""
        conditions, values = ["1 = 1"], list[object]()
        for condition, value in (
            ("robot = ?", robot),
            ("closed = ?", None if state is None else int(state == "closed")),
            ("first_seq < ?", before),
        ):
            if value is not None:
                conditions.append(condition)
                values.append(value)
        return self._rows(f"WHERE {' AND '.join(conditions)} ORDER BY first_seq DESC LIMIT ?", *values, limit)

    def fold(self, db: Transaction, events: Sequence[tuple[int, str, BatchEntry]]) -> None:
        """Enter what new events say of their calls.

        What says nothing that lasts is passed over: progress, and each update of an answered call but the newest.
        """
        said = [each for each in events if each[2].call_id and each[2].type in ("open", "update", "close")]
        newest: dict[tuple[str, str], int] = {}
        for _, robot, entry in said:
            key = robot, entry.call_id
            newest[key] = max(newest.get(key, 0), entry.event["seq"])
        calls = self._known(db, newest.keys())
        changed: dict[tuple[str, str], tuple[int, int]] = {}
        for seq, robot, entry in said:
            key = robot, entry.call_id
            changed[key] = changed.get(key, (seq, seq))[0], seq
            call = calls.get(key)
            if call is None or call.answer is None or entry.type != "update" or entry.event["seq"] == newest[key]:
                calls[key] = _folded(call, robot, ToolEvent.from_dict(entry.event))
        db.many(
            "INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (robot, call_id) DO UPDATE SET"
            " last_seq = excluded.last_seq, closed = excluded.closed, record = excluded.record",
            [
                (*key, first, last, int(calls[key].state == CLOSED), calls[key].view().model_dump_json())
                for key, (first, last) in sorted(changed.items())
            ],
        )

    def _known(self, db: Transaction, keys: Collection[tuple[str, str]]) -> dict[tuple[str, str], CallState]:
        found: dict[tuple[str, str], CallState] = {}
        ids = sorted({call_id for _, call_id in keys})
        for at in range(0, len(ids), _AT_ONCE):
            some = ids[at : at + _AT_ONCE]
            marks = ", ".join("?" * len(some))
            for robot, call_id, record in db.rows(
                f"SELECT robot, call_id, record FROM calls WHERE call_id IN ({marks})", *some
            ):
                if (robot, call_id) in keys:
                    found[robot, call_id] = CallState.model_validate_json(record)
        return found

    def _rows(self, condition: str, *values: object) -> list[RobotCallRow]:
        with self._engine.reading() as db:
            rows = db.rows(f"SELECT robot, call_id, first_seq, closed, record FROM calls {condition}", *values)
        return [
            RobotCallRow(robot, call_id, first, bool(closed), record)
            for robot, call_id, first, closed, record in rows
        ]


def _folded(call: CallState | None, robot: str, event: ToolEvent) -> CallState:
    """A call after one more event. Those of an older journal come behind newer ones: they are not how it stands."""
    if call is None:
        call = CallState.from_event(event)
        call.robot = robot
    elif event.type == "open":
        call.begin(event)
    if event.seq >= call.last_seq:
        call.apply(event)
    return call
