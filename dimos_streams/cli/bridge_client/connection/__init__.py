"""The other end of a command: a run of this machine, its bus, its bridge."""

from dimos_streams.cli.bridge_client.connection.address import BridgeAddress, BridgeUnreachableError
from dimos_streams.cli.bridge_client.connection.discovery import (
    bridge_of_run,
    bus_among,
    find_bridge,
    find_bus_url,
    find_run,
    find_run_with,
    living_runs,
)
from dimos_streams.cli.bridge_client.connection.gateway import at_bridge, open_gateway

__all__ = [
    "BridgeAddress",
    "BridgeUnreachableError",
    "at_bridge",
    "bridge_of_run",
    "bus_among",
    "find_bridge",
    "find_bus_url",
    "find_run",
    "find_run_with",
    "living_runs",
    "open_gateway",
]
