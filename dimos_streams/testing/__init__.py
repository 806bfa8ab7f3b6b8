"""Helpers for tests of modules and skills, without processes or network."""

from dimos_streams.testing.fault_bus import FaultBus, FaultCounts, Faults
from dimos_streams.testing.harness import HarnessCall, ModuleHarness

__all__ = ["FaultBus", "FaultCounts", "Faults", "HarnessCall", "ModuleHarness"]
