"""Hubs, their database and robots are killed at random; in the end each event of each robot is there once, in order.

``DIMOS_STREAMS_FLEET_CHAOS_S`` makes it so many seconds, with two hubs and 100 robots of 10 events a second each;
``DIMOS_STREAMS_FLEET_CHAOS_ROBOTS`` and ``…_RATE`` make it others, ``DIMOS_STREAMS_FUZZ_SEED`` other kills.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pytest
from pydantic_core import from_json

from benchmarks.fleet import add_robots, start_hub, start_robots
from benchmarks.postgres_cluster import PostgresCluster, is_installed, postgres_cluster
from dimos_streams.client.event_stream.sse_parser import SseEvent
from dimos_streams.client.sse_client import SseClient
from tests.helpers import wait_for
from tests.ports import free_port

SECONDS = float(os.environ.get("DIMOS_STREAMS_FLEET_CHAOS_S", "0"))
SEED = os.environ.get("DIMOS_STREAMS_FUZZ_SEED", "1")
ROBOTS = int(os.environ.get("DIMOS_STREAMS_FLEET_CHAOS_ROBOTS", "100" if SECONDS else "5"))
RATE = float(os.environ.get("DIMOS_STREAMS_FLEET_CHAOS_RATE", "10" if SECONDS else "40"))
_SIDES = 2 if SECONDS else 1
"""Hubs on one database, each with robots of its own."""
_BOUND_S = 60.0 + SECONDS

pytestmark = [
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.feature("H2", "H3"),
    pytest.mark.timeout(180 + 5 * SECONDS),
]


_logger = logging.getLogger(__name__)


class Reader:
    """Reads everything at a hub, through its ends; says what is missing, doubled or out of order."""

    def __init__(self, url: str) -> None:
        self.events = 0
        self.faults: list[str] = []
        self._ids: list[int] = [0]
        self._newest: dict[str, int] = {}
        self._client = SseClient(f"{url}/tool_streams?from=1", rng=random.Random(1), longest_wait_s=0.5)

    def __enter__(self) -> Reader:
        self._client.start(self._take)
        return self

    def __exit__(self, *error: object) -> None:
        self._client.stop()

    def _take(self, event: SseEvent) -> None:
        if event.type != "tool_stream":
            return
        fields = from_json(event.data)
        robot, number = fields["robot"], fields["seq"]
        before = self._newest.get(robot, 0)
        if fields["type"] == "gap" or number != before + 1 or int(event.id) <= self._ids[0]:
            self.faults.append(
                f"{event.id} after {self._ids[0]}: {number} of {robot} after {before}: {fields['text']}"
            )
        self._ids[0] = int(event.id)
        self._newest[robot] = number
        self.events += 1

    def has(self, expected: dict[str, int]) -> bool:
        """Whether all is there."""
        return self._newest == expected


class Fleet:
    """Processes that are killed and begun again. Robots of a side ship to the hub of that side."""

    def __init__(self, cluster: PostgresCluster, directory: Path) -> None:
        self.cluster, self.directory = cluster, directory
        self.ports = [free_port() for _ in range(_SIDES)]
        self.hubs: list[subprocess.Popen[str] | None] = [None] * _SIDES
        self.robots: list[subprocess.Popen[str] | None] = [None] * _SIDES
        self._has_database = True
        add_robots(cluster.url, directory, ROBOTS)

    def __enter__(self) -> Fleet:
        self.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        for process in (*self.hubs, *self.robots):
            if process is not None:
                _kill(process)

    def kill(self, what: str) -> None:
        """End a ``database``, a ``hub`` or ``robots``, the last two with the number of their side behind them."""
        if what == "database":
            self.cluster.kill()
            self._has_database = False
            return
        processes = self.hubs if what.startswith("hub") else self.robots
        if (process := processes[int(what[-1])]) is not None:
            _kill(process)
            processes[int(what[-1])] = None

    def begin(self) -> None:
        """Begin what does not run."""
        if not self._has_database:
            self.cluster.start()
            self._has_database = True
        for side in range(_SIDES):
            if self.hubs[side] is None:
                self.hubs[side] = start_hub(self.cluster.url, self.ports[side])
            if self.robots[side] is None:
                share = ROBOTS // _SIDES
                url, first = f"http://127.0.0.1:{self.ports[side]}", 1 + side * share
                self.robots[side] = start_robots(
                    url, self.directory, "--robots", share, "--first", first, "--rate", RATE, "--age-s", 0.1
                )

    def finish(self) -> dict[str, int]:
        """Let nothing happen any more, wait until all is shipped, and say how much there is of each robot."""
        for process in self.robots:
            assert process is not None
            process.communicate(timeout=_BOUND_S)
            assert process.returncode == 0
        counts = {}
        for number in range(1, ROBOTS // _SIDES * _SIDES + 1):
            with contextlib.closing(sqlite3.connect(self.directory / f"r{number}" / "journal.sqlite")) as db:
                counts[f"r{number}"] = db.execute("SELECT max(offset) FROM events").fetchone()[0]
        return counts


def _kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


@pytest.fixture
def cluster() -> Iterator[PostgresCluster]:
    pytest.importorskip("psycopg", reason="the extra `hub` is not installed")
    if not is_installed():
        pytest.skip("PostgreSQL is not installed, or there is no runuser: apt-get install postgresql")
    with postgres_cluster(safe=bool(SECONDS)) as made:
        yield made


def test_each_event_is_at_the_hub_once_whatever_is_killed(cluster: PostgresCluster, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    victims = ["database", *(f"{kind}{side}" for kind in ("hub", "robots") for side in range(_SIDES))]
    with Fleet(cluster, tmp_path) as fleet, Reader(f"http://127.0.0.1:{fleet.ports[0]}") as reader:
        if SECONDS:
            _torment(fleet, victims, chance)
        for victim in chance.sample(victims, len(victims)):
            seen = reader.events
            wait_for(lambda seen=seen: reader.events > seen + 10, _BOUND_S)  # type: ignore[misc]
            fleet.kill(victim)
            fleet.begin()
        expected = fleet.finish()
        with contextlib.suppress(AssertionError):  # what is missing is said below
            wait_for(lambda: reader.has(expected) or bool(reader.faults), _BOUND_S)
        assert reader.faults == []
        assert reader.has(expected), {"expected": expected, "read": reader.events}
        _logger.warning("%d events of %d robots, each once and in order", reader.events, len(expected))


def _torment(fleet: Fleet, victims: list[str], chance: random.Random) -> None:
    end, kills = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        time.sleep(chance.uniform(0.0, 6.0))
        for victim in chance.sample(victims, chance.choice((1, 1, 2, 3))):
            fleet.kill(victim)
            kills += 1
        time.sleep(chance.uniform(0.0, 3.0))
        fleet.begin()
    _logger.warning("%d kills in %g s", kills, SECONDS)
