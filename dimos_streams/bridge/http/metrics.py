"""The counters of the bridge, as Prometheus scrapes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bridge.journal.broadcast import Hub

_Family = CounterMetricFamily | GaugeMetricFamily
_F = TypeVar("_F", CounterMetricFamily, GaugeMetricFamily)
_ByLabel = tuple[str, Mapping[str, float]]
"""A label and a value for each of the label's values."""


def registry_of(broker: Broker, hub: Hub) -> CollectorRegistry:
    """A registry of its own for one bridge, as there may be several in a process."""
    registry = CollectorRegistry()
    registry.register(BridgeCollector(broker, hub))
    return registry


class BridgeCollector(Collector):
    """Reads what a bridge counts anyway when it is scraped. Counters begin at 0 with the bridge's process."""

    def __init__(self, broker: Broker, hub: Hub) -> None:
        self._broker, self._hub = broker, hub

    def collect(self) -> Iterator[_Family]:
        """The families of metrics, each once."""
        yield from _bus(self._broker)
        yield from _receiver(self._broker)
        yield from _journal(self._hub)
        yield from _streams(self._hub)
        yield from _calls(self._broker)
        yield from _modules(self._broker)


def _bus(broker: Broker) -> Iterator[_Family]:
    bus = broker.bus.statistics()
    yield _counter("bus_published", "Messages sent by the bridge's process.", bus.published)
    yield _counter("bus_published_bytes", "Bytes sent by the bridge's process.", bus.published_bytes)
    yield _counter("bus_received", "Messages that came to subscriptions of the bridge's process.", bus.received)
    yield _counter("bus_dropped", "Messages dropped, oldest first, from queues that were full.", bus.dropped)
    yield _counter("bus_handler_errors", "Messages whose handler raised.", bus.errors)
    yield _counter("malformed", "Messages skipped because they were none.", ("reader", broker.malformed()))
    yield _counter("contradictions", "What came in another one's name and was not believed.", broker.contradictions())


def _receiver(broker: Broker) -> Iterator[_Family]:
    receiver = broker.receiver.statistics()
    yield _counter("events_received", "Events taken off the bus, each once and in order.", receiver.delivered)
    yield _counter("events_duplicate", "Events that had come before.", receiver.duplicates)
    yield _counter("events_ignored", "Events of closed calls, or of too many calls.", broker.ledger.ignored)
    yield _counter("events_lost", "Events that could not be had again; readers got a gap for them.", receiver.gaps)
    yield _counter("nacks", "Requests to send missing events again.", receiver.nacks)


def _journal(hub: Hub) -> Iterator[_Family]:
    journal = hub.journal
    yield _gauge("journal_ok", "1 while the journal is kept where it should be, 0 in memory.", journal.state == "ok")
    yield _gauge("journal_first_offset", "The oldest offset in the journal.", journal.first_offset)
    yield _gauge("journal_last_offset", "The newest offset in the journal.", journal.last_offset)
    yield _gauge("journal_bytes", "Bytes that the journal uses.", journal.size())


def _streams(hub: Hub) -> Iterator[_Family]:
    statistics = hub.statistics()
    yield _gauge("streams_open", "Readers of events now.", statistics.readers)
    yield _gauge("streams_lag", "Offsets that the slowest reader is behind.", statistics.lag)
    yield _counter("streams_cut", "Clients cut off because they did not read.", statistics.cut)
    yield _counter("streams_coalesced", "Progress left out for slow readers.", statistics.coalesced)
    yield _counter("streams_gaps", "Gap events that readers got.", statistics.gaps)
    yield _gauge("ring_events", "Events in memory for readers.", statistics.ring_events)
    yield _gauge("ring_bytes", "Bytes of the events in memory for readers.", statistics.ring_bytes)


def _calls(broker: Broker) -> Iterator[_Family]:
    ledger = broker.ledger
    states = Counter[str](call.state for call in ledger.calls.open)
    yield _gauge("calls", "Calls that are not closed.", ("state", states))
    yield _counter("calls_closed", "Calls that were closed.", ("outcome", ledger.closed))
    held = dict.fromkeys(ledger.leases.holders(), 1)
    yield _gauge("lease_held", "1 for each resource that a call holds.", ("resource", held))


def _modules(broker: Broker) -> Iterator[_Family]:
    modules = {module.name: module for module in broker.directory.modules()}
    alive = {name: module.alive for name, module in modules.items()}
    ages = {name: round(module.age_s, 3) for name, module in modules.items()}
    yield _gauge("module_alive", "Whether a module was heard of lately.", ("module", alive))
    yield _gauge("module_heartbeat_age_seconds", "Time since a module's last heartbeat.", ("module", ages))


def _counter(name: str, help: str, value: float | _ByLabel) -> CounterMetricFamily:
    """A count that only grows; the library adds ``_total`` to its name."""
    return _filled(CounterMetricFamily, name, help, value)


def _gauge(name: str, help: str, value: float | _ByLabel) -> GaugeMetricFamily:
    """A value of now."""
    return _filled(GaugeMetricFamily, name, help, value)


def _filled(kind: type[_F], name: str, help: str, value: float | _ByLabel) -> _F:
    label, values = value if isinstance(value, tuple) else ("", {"": value})
    family = kind(f"dimos_streams_{name}", help, labels=[label] if label else [])
    for of, each in values.items():
        family.add_metric([of] if label else [], each)
    return family
