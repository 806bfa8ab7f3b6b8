"""The state of a bridge as a whole: the answer to ``GET /healthz``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.journal.broadcast import JournalBroadcast


def health_of(
    broker: Broker, broadcast: JournalBroadcast, disk: str, fleet_hub: dict[str, Any] | None
) -> dict[str, Any]:
    """Return what works, what is lost meanwhile, and counts. ``disk`` says why files can't be written, empty if they
    can; ``fleet_hub`` is the state of the link to a hub, None if there is no link."""
    journal, receiver = broadcast.journal, broker.receiver.statistics()
    where = journal.state.partition(":")[0]
    lost = [f"events, at the bridge's end: the journal is in {where}"] if where != "ok" else []
    if disk:
        lost += ["logs", "mission records", "pictures"]
    lost += broker.stops.lost()
    if broker.is_deaf:
        lost.append("what is said on the bus: the bridge does not even hear itself")
    return {
        "status": "degraded" if lost else "ok",
        "disk": disk or "ok",
        "lost": lost,
        "stopped": broker.stops.stopped().model_dump(mode="json"),
        "not_ending": [call.model_dump(mode="json") for call in broker.cancels.lingering()],
        "unwell": broker.directory.unwell(),
        "journal": {
            "state": journal.state,
            "first_offset": journal.first_offset,
            "last_offset": journal.last_offset,
            "bytes": journal.size(),
        },
        "hub": fleet_hub,
        "offset": broadcast.last_offset,
        "counts": {
            "modules": broker.directory.count,
            "open_calls": len(broker.ledger.calls.open),
            "leases": broker.ledger.leases.holders(),
            "broadcast": asdict(broadcast.statistics()),
            "receiver": asdict(receiver),
        },
    }
