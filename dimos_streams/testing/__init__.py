"""Helpers for tests of modules and skills, without processes or network."""

from dimos_streams.testing.fault_bus import FaultBus, FaultCounts, Faults
from dimos_streams.testing.fault_injection import FaultInjection
from dimos_streams.testing.harness import HarnessCall, ModuleHarness
from dimos_streams.testing.part import CrashablePart, PartDownError
from dimos_streams.testing.part_gateway import PartGateway

__all__ = [
    "CrashablePart",
    "FaultBus",
    "FaultCounts",
    "FaultInjection",
    "Faults",
    "HarnessCall",
    "ModuleHarness",
    "PartDownError",
    "PartGateway",
]
