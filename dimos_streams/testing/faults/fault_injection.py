"""Faults in a live run: each of its processes publishes through a ``FaultBus`` of its own."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from dimos_streams.bus import Bus
from dimos_streams.testing.faults.fault_bus import FaultBus, Faults


@dataclass(frozen=True)
class FaultInjection:
    """A wrapper of buses for ``RunOptions.wrap_bus``. Each process has a seed of its own, made of ``seed`` and the
    process's label."""

    faults: Faults
    seed: int = 0

    def __call__(self, bus: Bus, label: str) -> Bus:
        digest = hashlib.sha256(f"{self.seed}/{label}".encode()).digest()
        return FaultBus(bus, self.faults, seed=int.from_bytes(digest[:8], "big"))
