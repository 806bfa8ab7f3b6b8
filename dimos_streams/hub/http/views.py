"""``/healthz`` and ``/metrics`` of a hub."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from fastapi import FastAPI
from prometheus_client.registry import Collector

from dimos_streams import __version__
from dimos_streams.bridge.http.metrics import Family, counter, gauge, mount_metrics, readers
from dimos_streams.hub.parts import HubParts
from dimos_streams.hub.storage.schema import SCHEMA
from dimos_streams.hub.upkeep import Upkeep
from dimos_streams.serving.openapi import refusals


def mount_views(app: FastAPI, parts: HubParts, upkeep: Upkeep) -> None:
    """Add the routes to an app."""

    @app.get("/healthz", responses=refusals())
    async def healthz() -> dict[str, Any]:
        return _health(parts, upkeep)

    mount_metrics(app, HubCollector(parts, upkeep))


def _health(parts: HubParts, upkeep: Upkeep) -> dict[str, Any]:
    """The state of a hub as a whole: the answer to ``GET /healthz``."""
    trouble = parts.trouble
    robots = list(parts.robots.known.values())
    statistics = parts.feed.broadcast.statistics()
    return {
        "status": "degraded" if trouble else "ok",
        "database": trouble or "ok",
        "lost": [],
        "name": parts.name,
        "version": __version__,
        "schema": SCHEMA,
        "others": [{"name": name, "version": version, "url": url} for name, version, url in upkeep.others],
        "offset": parts.feed.log.last_offset,
        "first_offset": parts.feed.broadcast.first_offset,
        "counts": {
            "robots": len(robots),
            "connected": sum(robot.row.connected for robot in robots),
            "connected_here": len(parts.streams),
            "open_calls": sum(robot.open_calls for robot in robots),
            "leases": {},
            "broadcast": asdict(statistics),
            "receiver": {"delivered": parts.intake.entries, "gaps": statistics.gaps, "malformed": 0},
        },
    }


class HubCollector(Collector):
    """Reads what a hub counts anyway when it is scraped; nothing here asks the database."""

    def __init__(self, parts: HubParts, upkeep: Upkeep) -> None:
        self._parts = parts
        self._upkeep = upkeep

    def collect(self) -> Iterator[Family]:
        """The families of metrics, each once."""
        feed, intake, robots = self._parts.feed, self._parts.intake, self._parts.robots.known
        yield gauge("hub_ok", "1 while the database takes and gives events.", not self._parts.trouble)
        yield gauge("hub_first_offset", "The oldest number in the sequence.", feed.broadcast.first_offset)
        yield gauge("hub_last_offset", "The newest number that this hub has read.", feed.log.last_offset)
        yield counter(
            "hub_entries", "Events of robots taken by this hub, again or for the first time.", intake.entries
        )
        yield gauge("hub_pace_seconds", "The pause between batches that robots are asked for.", intake.pace_s)
        yield gauge("hub_database_bytes", "Bytes that the database used lately.", self._upkeep.database_bytes)
        yield gauge(
            "hub_streams_here", "Robots that hold a stream of commands at this hub.", len(self._parts.streams)
        )
        connected = {name: robot.row.connected for name, robot in robots.items()}
        yield gauge("robot_connected", "Whether a robot is connected, at any hub.", ("robot", connected))
        yield from readers(feed.broadcast)
