"""What the bridge counts, as Prometheus scrapes it."""

from __future__ import annotations

from collections import Counter

from dimos_streams.bridge.broker import Broker
from dimos_streams.bridge.exposition import Exposition
from dimos_streams.bridge.hub import Hub


def metrics(broker: Broker, hub: Hub) -> str:
    """A page in Prometheus' text format. Counters begin at 0 with the bridge's process."""
    page = Exposition("dimos_streams")
    _bus(page, broker)
    _receiver(page, broker)
    _journal(page, hub)
    _streams(page, hub)
    _calls(page, broker)
    _modules(page, broker)
    return page.text()


def _bus(page: Exposition, broker: Broker) -> None:
    bus = broker.bus.statistics()
    page.counter("bus_published", "Messages sent by the bridge's process.", bus.published)
    page.counter("bus_published_bytes", "Bytes sent by the bridge's process.", bus.published_bytes)
    page.counter("bus_received", "Messages that came to subscriptions of the bridge's process.", bus.received)
    page.counter("bus_dropped", "Messages dropped, oldest first, from queues that were full.", bus.dropped)
    page.counter("bus_handler_errors", "Messages whose handler raised.", bus.errors)
    page.counter("malformed", "Messages skipped because they were none.", broker.malformed(), "reader")
    page.counter("contradictions", "What came in another one's name and was not believed.", broker.contradictions())


def _receiver(page: Exposition, broker: Broker) -> None:
    receiver = broker.receiver.statistics()
    page.counter("events_received", "Events taken off the bus, each once and in order.", receiver.delivered)
    page.counter("events_duplicate", "Events that had come before.", receiver.duplicates)
    page.counter("events_ignored", "Events of closed calls, or of too many calls.", broker.ledger.ignored)
    page.counter("events_lost", "Events that could not be had again; readers got a gap for them.", receiver.gaps)
    page.counter("repair_requests", "Requests to send missing events again.", receiver.repair_requests)


def _journal(page: Exposition, hub: Hub) -> None:
    journal = hub.journal
    page.gauge("journal_ok", "1 while the journal is kept where it should be, 0 in memory.", journal.state == "ok")
    page.gauge("journal_first_place", "The oldest place in the journal.", journal.first_place)
    page.gauge("journal_last_place", "The newest place in the journal.", journal.last_place)
    page.gauge("journal_bytes", "Bytes that the journal uses.", journal.size())


def _streams(page: Exposition, hub: Hub) -> None:
    statistics = hub.statistics()
    page.gauge("streams_open", "Readers of events now.", statistics.readers)
    page.gauge("streams_lag", "Places that the slowest reader is behind.", statistics.lag)
    page.counter("streams_cut", "Clients cut off because they did not read.", statistics.cut)
    page.counter("streams_thinned", "Progress left out for slow readers.", statistics.thinned)
    page.counter("streams_gaps", "Gap events that readers got.", statistics.gaps)
    page.gauge("ring_events", "Events in memory for readers.", statistics.ring_events)
    page.gauge("ring_bytes", "Bytes of the events in memory for readers.", statistics.ring_bytes)


def _calls(page: Exposition, broker: Broker) -> None:
    ledger = broker.ledger
    page.gauge("calls", "Calls that are not closed.", Counter(call.state for call in ledger.calls.open), "state")
    page.counter("calls_closed", "Calls that were closed.", ledger.closed, "outcome")
    held = dict.fromkeys(ledger.leases.holders(), 1)
    page.gauge("lease_held", "1 for each resource that a call holds.", held, "resource")


def _modules(page: Exposition, broker: Broker) -> None:
    modules = {module.name: module for module in broker.directory.modules()}
    alive = {name: module.alive for name, module in modules.items()}
    ages = {name: round(module.age_s, 3) for name, module in modules.items()}
    page.gauge("module_alive", "Whether a module was heard of lately.", alive, "module")
    page.gauge("module_heartbeat_age_seconds", "Time since a module's last heartbeat.", ages, "module")
