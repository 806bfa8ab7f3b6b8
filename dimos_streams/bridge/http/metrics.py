"""The counters of the bridge, as Prometheus scrapes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeVar

from fastapi import FastAPI, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.journal.broadcast import Broadcast, JournalBroadcast
from dimos_streams.serving.openapi import refusals

Family = CounterMetricFamily | GaugeMetricFamily
_F = TypeVar("_F", CounterMetricFamily, GaugeMetricFamily)
_ByLabel = tuple[str, Mapping[str, float]]
"""A label and a value for each of the label's values."""


def mount_metrics(app: FastAPI, collector: Collector) -> None:
    """Add the route, with a registry of its own: there may be several bridges in a process."""
    registry = CollectorRegistry()
    registry.register(collector)
    ProcessCollector(registry=registry)

    @app.get("/metrics", response_class=PlainTextResponse, responses=refusals())
    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)


class BridgeCollector(Collector):
    """Reads what a bridge counts anyway when it is scraped. Counters begin at 0 with the bridge's process."""

    def __init__(self, broker: Broker, broadcast: JournalBroadcast) -> None:
        self._broker, self._broadcast = broker, broadcast

    def collect(self) -> Iterator[Family]:
        """The families of metrics, each once."""
        yield from _bus(self._broker)
        yield from _receiver(self._broker)
        yield from _journal(self._broadcast)
        yield from readers(self._broadcast)
        yield from _ring(self._broadcast)
        yield from _calls(self._broker)
        yield from _modules(self._broker)


def _bus(broker: Broker) -> Iterator[Family]:
    bus = broker.bus.statistics()
    yield counter("bus_published", "Messages sent by the bridge's process.", bus.published)
    yield counter("bus_published_bytes", "Bytes sent by the bridge's process.", bus.published_bytes)
    yield counter("bus_received", "Messages that came to subscriptions of the bridge's process.", bus.received)
    yield counter("bus_dropped", "Messages dropped, oldest first, from queues that were full.", bus.dropped)
    yield counter("bus_handler_errors", "Messages whose handler raised.", bus.errors)
    yield counter("malformed", "Messages that could not be decoded.", ("reader", broker.malformed()))
    text = "Messages rejected because they claimed another instance's name."
    yield counter("contradictions", text, broker.contradictions())


def _receiver(broker: Broker) -> Iterator[Family]:
    receiver = broker.receiver.statistics()
    yield counter("events_received", "Events taken off the bus, each once and in order.", receiver.delivered)
    yield counter("events_duplicate", "Events that had come before.", receiver.duplicates)
    yield counter("events_ignored", "Events of closed calls, or of too many calls.", broker.ledger.ignored)
    yield counter("events_lost", "Events that could not be had again; readers got a gap for them.", receiver.gaps)
    yield counter("nacks", "Requests to send missing events again.", receiver.nacks)


def _journal(broadcast: JournalBroadcast) -> Iterator[Family]:
    journal = broadcast.journal
    yield gauge("journal_ok", "1 while the journal is kept where it should be, 0 in memory.", journal.state == "ok")
    yield gauge("journal_first_offset", "The oldest offset in the journal.", journal.first_offset)
    yield gauge("journal_last_offset", "The newest offset in the journal.", journal.last_offset)
    yield gauge("journal_bytes", "Bytes that the journal uses.", journal.size())


def readers(broadcast: Broadcast) -> Iterator[Family]:
    """The families about the readers of events, of a bridge or of a hub."""
    statistics = broadcast.statistics()
    yield gauge("streams_open", "Readers of events now.", statistics.readers)
    yield gauge("streams_lag", "Offsets that the slowest reader is behind.", statistics.lag)
    yield counter("streams_cut", "Clients cut off because they did not read.", statistics.cut)
    yield counter("streams_coalesced", "Progress left out for slow readers.", statistics.coalesced)
    yield counter("streams_gaps", "Gap events that readers got.", statistics.gaps)


def _ring(broadcast: Broadcast) -> Iterator[Family]:
    statistics = broadcast.statistics()
    yield gauge("ring_events", "Events in memory for readers.", statistics.ring_events)
    yield gauge("ring_bytes", "Bytes of memory that the events kept for readers take.", statistics.ring_bytes)


def _calls(broker: Broker) -> Iterator[Family]:
    ledger = broker.ledger
    states = Counter[str](call.state for call in ledger.calls.open)
    yield gauge("calls", "Calls that are not closed.", ("state", states))
    yield counter("calls_closed", "Calls that were closed.", ("outcome", ledger.closed))
    held = dict.fromkeys(ledger.leases.holders(), 1)
    yield gauge("lease_held", "1 for each resource that a call holds.", ("resource", held))


def _modules(broker: Broker) -> Iterator[Family]:
    modules = {module.name: module for module in broker.directory.modules()}
    alive = {name: module.alive for name, module in modules.items()}
    ages = {name: round(module.age_s, 3) for name, module in modules.items()}
    yield gauge("module_alive", "Whether a module was heard of lately.", ("module", alive))
    yield gauge("module_heartbeat_age_seconds", "Time since a module's last heartbeat.", ("module", ages))


def counter(name: str, help: str, value: float | _ByLabel) -> CounterMetricFamily:
    """A count that only grows; the library adds ``_total`` to its name."""
    return _filled(CounterMetricFamily, name, help, value)


def gauge(name: str, help: str, value: float | _ByLabel) -> GaugeMetricFamily:
    """A present value."""
    return _filled(GaugeMetricFamily, name, help, value)


def _filled(kind: type[_F], name: str, help: str, value: float | _ByLabel) -> _F:
    label, values = value if isinstance(value, tuple) else ("", {"": value})
    family = kind(f"dimos_streams_{name}", help, labels=[label] if label else [])
    for of, each in values.items():
        family.add_metric([of] if label else [], each)
    return family
