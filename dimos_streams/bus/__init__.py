"""Bytes on channels: LCM multicast between processes, or memory within one."""

from collections.abc import Mapping
from typing import assert_never

from dimos_streams.bus.base import Bus, BusStatistics
from dimos_streams.bus.delivery import Delivery
from dimos_streams.bus.lcm.url import DEFAULT_URL
from dimos_streams.bus.subscription import Handler, Subscription, SubscriptionStatistics
from dimos_streams.bus.url import bus_url, transport_of

__all__ = [
    "DEFAULT_URL",
    "Bus",
    "BusStatistics",
    "Delivery",
    "Handler",
    "Subscription",
    "SubscriptionStatistics",
    "bus_url",
    "create_bus",
    "transport_of",
]


def create_bus(url: str, delivery: Mapping[str, Delivery] | None = None) -> Bus:
    """A bus for ``url``, not yet open: ``memq://`` in memory, ``udpm://…`` LCM, ``zenoh://…``. Raises
    ``BusUrlError`` for others.

    ``delivery`` says by topic how messages are delivered, for transports that leave the choice: Zenoh does.
    """
    match transport_of(url):
        case "memq":
            from dimos_streams.bus.memory import MemoryBus

            return MemoryBus(url)
        case "zenoh":
            from dimos_streams.bus.zenoh.bus import ZenohBus

            return ZenohBus(url, delivery)
        case "udpm":
            from dimos_streams.bus.lcm.bus import LcmBus

            return LcmBus(url)
        case unknown:
            assert_never(unknown)
