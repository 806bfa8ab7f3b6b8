"""Calls of all robots, folded from their events as these are stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from dimos_streams.bridge.calls.call_pages import WantedState
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.state.journalled_call import CLOSED
from dimos_streams.common.json.reading import parse_json
from dimos_streams.fleet.paths import bare_path
from dimos_streams.hub.storage.engines.engine import Engine, Row, Transaction
from dimos_streams.hub.storage.rows import ROW_BYTES, BatchEntry, RobotCallRow
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.gateway import CallView
from dimos_streams.tool_stream.protocol.call_ids import is_call_id

_SELECT = "SELECT robot, call_id, first_seq, closed, record FROM calls"
_AT_ONCE = 200
"""Maximum number of calls that one statement asks for."""
_STEP = 1000
"""Maximum number of calls that one transaction looks at to drop those that are old: others wait for it."""
_OPEN_BYTES = 1_000_000
"""Maximum size, in bytes, of the newest open calls of each robot that are kept when their events are dropped; a sound
one has a few of some hundred bytes."""
_LATELY = 10_000
"""Number of the newest commands among whose answers a call is looked for of which no event has come."""


class CallTable:
    """The calls of a hub, each folded from its events as those are stored. Methods raise as those of ``HubStorage``
    do, and wait for the database likewise."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def find(self, call_id: str) -> list[RobotCallRow]:
        """The calls with an id: one, unless several robots have chosen the same."""
        with self._engine.reading() as db:
            return [_call(row) for row in db.rows(f"{_SELECT} WHERE call_id = ?", call_id)]

    def drop_before(self, seq: int, open_bytes: int) -> None:
        """Forget the calls whose events all have lower numbers. Those that go on stay as far as there is room for
        them, which is ``open_bytes`` shared by all robots: who can't see one can't cancel it. They are looked for
        among those that began before it: there may be millions of others."""
        with self._engine.reading() as db:
            ((robots,),) = db.rows("SELECT count(*) FROM robots")
        each = min(_OPEN_BYTES, open_bytes // max(robots, 1))
        room = defaultdict[str, int](lambda: each)
        before = seq
        while before > 0:
            with self._engine.transaction() as db:
                before = self._drop_step(db, seq, before, room)

    def _drop_step(self, db: Transaction, seq: int, before: int, room: defaultdict[str, int]) -> int:
        """Forget those of the next calls that began before a number; return the first number that was looked at."""
        began = "SELECT first_seq FROM calls WHERE first_seq < ? ORDER BY first_seq DESC LIMIT 1 OFFSET ?"
        step = db.rows(began, before, _STEP - 1)
        since = int(step[0][0]) if step else 0
        size = f"CASE WHEN closed = 0 THEN {ROW_BYTES} + {self._engine.text_bytes.format('record')} ELSE 0 END"
        old = db.rows(
            f"SELECT first_seq, robot, {size} FROM calls WHERE first_seq >= ? AND first_seq < ? AND last_seq < ?"
            " ORDER BY first_seq DESC",
            since, before, seq,
        )  # fmt: skip
        dropped = [first for first, robot, size in old if not _has_room(room, robot, size)]
        db.many("DELETE FROM calls WHERE first_seq = ? AND last_seq < ?", [(first, seq) for first in dropped])
        return since

    def begun_at(self, call_id: str) -> list[str]:
        """The robots whose answers to requests for a call have named this one lately, whichever hub was asked; the
        newest first. The id has the form of one."""
        with self._engine.reading() as db:
            rows = db.rows(
                "WITH newest AS (SELECT id, robot, method, path, answer FROM commands ORDER BY id DESC LIMIT ?)"
                " SELECT robot, path, answer FROM newest WHERE method = 'POST' AND answer LIKE ? ORDER BY id DESC",
                _LATELY, f'%"call_id":"{call_id}"%',
            )  # fmt: skip
        found = [robot for robot, path, answer in rows if bare_path(path) == "/calls" and _names(answer, call_id)]
        return list(dict.fromkeys(found))

    def begun_with(self, key: str) -> tuple[tuple[str, str] | None, bool]:
        """The robot and the id of the call that the answer to the command of a key has named, whichever hub gave it,
        and whether a command of the key may still be answered. Keys are found by the robot: clients may ask for many
        that nobody has."""
        with self._engine.reading() as db:
            rows = db.rows(  # a cross join: SQLite would look through all commands first
                "SELECT robot, answer, answered IS NULL AND (sent IS NOT NULL OR expires > ?)"
                " FROM robots CROSS JOIN commands WHERE robot = name AND key = ?",
                db.now(), key,
            )  # fmt: skip
        named = ((robot, _named(answer or "null")) for robot, answer, _ in rows)
        return next(((robot, id) for robot, id in named if id), None), any(may_come for *_, may_come in rows)

    def newest(
        self,
        limit: int,
        *,
        robot: str | None,
        state: WantedState | None,
        before: int | None,
        max_bytes: int | None = None,
    ) -> list[RobotCallRow]:
        """The newest calls, newest first, of one robot or state if wanted, whose first event is before a number.

        The one with which they have more than ``max_bytes`` is the last: what comes behind it is not fetched.
        """
        conditions, values = ["1 = 1"], list[object]()
        for condition, value in (
            ("robot = ?", robot),
            ("closed = ?", None if state is None else int(state == "closed")),
            ("first_seq < ?", before),
        ):
            if value is not None:
                conditions.append(condition)
                values.append(value)
        # The numbers first: where a robot's calls have to be sorted, it is not whole records that are.
        newest = f"SELECT first_seq FROM calls WHERE {' AND '.join(conditions)} ORDER BY first_seq DESC LIMIT ?"
        with (
            self._engine.reading() as db,
            db.each(
                f"{_SELECT} WHERE first_seq IN ({newest}) ORDER BY first_seq DESC",
                *values, limit,
            ) as rows,
        ):  # fmt: skip
            return _up_to(map(_call, rows), max_bytes)

    def fold(self, db: Transaction, events: Sequence[tuple[int, str, BatchEntry]]) -> None:
        """Enter what new events say of their calls.

        What says nothing that lasts is passed over: progress, and each update of an answered call but the newest.
        """
        said = [each for each in events if each[2].call_id and each[2].type != "progress"]
        newest: dict[tuple[str, str], int] = {}
        for _, robot, entry in said:
            key = robot, entry.call_id
            newest[key] = max(newest.get(key, 0), entry.event["seq"])
        calls = self._load(db, newest.keys())
        changed: dict[tuple[str, str], tuple[int, int]] = {}
        for seq, robot, entry in said:
            key = robot, entry.call_id
            changed[key] = changed.get(key, (seq, seq))[0], seq
            call = calls.get(key)
            if call is None or call.answer is None or entry.type != "update" or entry.event["seq"] == newest[key]:
                calls[key] = _fold(call, robot, ToolEvent.from_dict(entry.event))
        db.many(
            "INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (robot, call_id) DO UPDATE SET"
            " last_seq = excluded.last_seq, closed = excluded.closed, record = excluded.record",
            [
                (*key, first, last, int(calls[key].state == CLOSED), calls[key].view().model_dump_json())
                for key, (first, last) in sorted(changed.items())
            ],
        )

    def _load(self, db: Transaction, keys: Collection[tuple[str, str]]) -> dict[tuple[str, str], CallState]:
        found: dict[tuple[str, str], CallState] = {}
        ids = sorted({call_id for _, call_id in keys})
        for at in range(0, len(ids), _AT_ONCE):
            some = ids[at : at + _AT_ONCE]
            marks = ", ".join("?" * len(some))
            for robot, call_id, record in db.rows(
                f"SELECT robot, call_id, record FROM calls WHERE call_id IN ({marks})", *some
            ):
                if (robot, call_id) in keys:
                    found[robot, call_id] = CallState.from_view(CallView.model_validate_json(record))
        return found


def lose_calls(db: Transaction, robot: str, why: str) -> None:
    """Close a robot's open calls as lost. What it ships of them later counts all the same."""
    now = db.now()
    rows = db.rows("SELECT call_id, record FROM calls WHERE robot = ? AND closed = 0 ORDER BY call_id", robot)
    lost = {"state": CLOSED, "outcome": Outcome.LOST, "text": why, "closed_utime": now}
    views = [CallView.model_validate_json(record).model_copy(update=lost) for _, record in rows]
    db.many(
        "UPDATE calls SET closed = 1, record = ? WHERE robot = ? AND call_id = ?",
        [(view.model_dump_json(), robot, view.call_id) for view in views],
    )


def _has_room(room: defaultdict[str, int], robot: str, size: int) -> bool:
    """Return whether a call may stay though its events go, whose size is 0 if it has ended: if its robot has room for
    it beside those that stay already. One that is too large takes no room from the others."""
    stays = 0 < size <= room[robot]
    if stays:
        room[robot] -= size
    return stays


def _names(answer: str, call_id: str) -> bool:
    """Return whether an answer is about this call, and not only one in whose text its id stands."""
    return _named(answer) == call_id


def _named(answer: str) -> str | None:
    """The id of the call that an answer is about, None if it is about none."""
    body = parse_json(answer)
    id = body.get("call_id") if isinstance(body, dict) else None
    return id if isinstance(id, str) and is_call_id(id) else None


def _call(row: Row) -> RobotCallRow:
    robot, call_id, first, closed, record = row
    return RobotCallRow(robot, call_id, first, bool(closed), record)


def _up_to(calls: Iterator[RobotCallRow], max_bytes: int | None) -> list[RobotCallRow]:
    """The calls up to the one with which they have more bytes than that."""
    found: list[RobotCallRow] = []
    size = 0
    for call in calls:
        found.append(call)
        size += len(call.record.encode())
        if max_bytes is not None and size > max_bytes:
            break
    return found


def _fold(call: CallState | None, robot: str, event: ToolEvent) -> CallState:
    """A call after one more event. Those of an older journal come behind newer ones: they are not how it stands."""
    if call is None:
        call = CallState.from_event(event)
        call.robot = robot
    elif event.type == "open":
        call.read_open(event)
    if event.seq >= call.last_seq:
        call.apply(event)
    return call
