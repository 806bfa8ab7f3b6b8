"""The partitions of a PostgreSQL database's events, each a range of numbers."""

from __future__ import annotations

from typing import NamedTuple

from dimos_streams.hub.storage.engines.engine import Transaction

_LOCK_MS = 2000
"""Time, in ms, for which others wait at most if a partition is to end or to go while somebody reads events."""


class Partition(NamedTuple):
    """A table with the events of a range of numbers."""

    name: str
    first: int
    behind: int
    """The number behind the last."""


def partitions(db: Transaction) -> list[Partition]:
    """All of them, oldest first. The server has no bounds of one that another hub drops meanwhile."""
    found = db.rows(
        "SELECT relname, pg_get_expr(relpartbound, oid) FROM pg_class"
        " WHERE oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'events'::regclass)"
    )
    bounds = [Partition(name, *(int(part) for part in bound.split("'")[1::2])) for name, bound in found if bound]
    return sorted(bounds, key=lambda each: each.first)


def add_partition(db: Transaction, first: int, behind: int) -> None:
    """Make one by itself, and then attach it: nobody has to wait for that."""
    name = f"events_{first}"
    db.run(f"CREATE TABLE {name} (LIKE events INCLUDING ALL)")
    db.run(f"ALTER TABLE {name} ADD CONSTRAINT {name}_range CHECK (seq >= {first} AND seq < {behind})")
    _attach(db, Partition(name, first, behind))


def filled_partition(db: Transaction, size: int) -> Partition | None:
    """The one that is being filled, if it takes more than ``size`` bytes; as it will be if it ends with the newest
    number."""
    ((last,),) = db.rows("SELECT last_seq FROM fleet")
    for each in partitions(db):
        if each.first <= last < each.behind - 1:
            ((taken,),) = db.rows("SELECT pg_total_relation_size(?::regclass)", each.name)
            return each._replace(behind=last + 1) if taken > size else None
    return None


def look_through(db: Transaction, partition: Partition) -> None:
    """Have all rows of one in the server's memory, while others read and store: so whoever waits until it has ended
    waits for no disk."""
    db.rows(f"SELECT count(*) FROM {partition.name} WHERE stored < 0")


def end_filled_partition(db: Transaction, size: int) -> None:
    """End the one that is being filled with the newest number, if it takes more than ``size`` bytes; another one
    takes the rest of its range. Nobody reads or stores events meanwhile: the server looks through its rows, for which
    ``look_through`` has prepared it."""
    _wait_briefly(db)
    db.run("LOCK TABLE ONLY events IN ACCESS EXCLUSIVE MODE")
    ended = filled_partition(db, size)
    if ended is None:  # another hub was faster
        return
    behind = next(each.behind for each in partitions(db) if each.name == ended.name)
    db.run(f"ALTER TABLE events DETACH PARTITION {ended.name}")
    _attach(db, ended)
    add_partition(db, ended.behind, behind)


def drop_partition(db: Transaction, partition: Partition) -> None:
    """Drop one, if it is there; its room is free at once."""
    _wait_briefly(db)
    db.run(f"DROP TABLE IF EXISTS {partition.name}")


def used_by_partitions(db: Transaction) -> int:
    """Bytes that all of them take on the disk, with their indexes."""
    size = "sum(pg_total_relation_size(inhrelid))"
    ((taken,),) = db.rows(f"SELECT coalesce({size}, 0) FROM pg_inherits WHERE inhparent = 'events'::regclass")
    return int(taken)


def _attach(db: Transaction, partition: Partition) -> None:
    name, first, behind = partition
    db.run(f"ALTER TABLE events ATTACH PARTITION {name} FOR VALUES FROM ({first}) TO ({behind})")


def _wait_briefly(db: Transaction) -> None:
    db.run(f"SET LOCAL lock_timeout = '{_LOCK_MS}ms'")
