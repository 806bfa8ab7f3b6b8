"""The result of one measurement."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """The events that readers got: of each the position in its call, when it was sent, and when it came, in µs."""

    numbers: Sequence[Sequence[int]]
    """Per reader and call, in the order in which they came."""
    latencies_us: Sequence[int]
    first_us: int
    last_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One row of the table. Latencies are in milliseconds."""

    name: str
    sent: int
    received: int
    in_order: bool
    p50_ms: float
    p99_ms: float
    max_ms: float
    events_per_s: int
    remark: str = ""
    peer_of: str = ""
    """The row that did the same here, if this one is about another installation."""

    @classmethod
    def of(cls, name: str, sent: int, arrivals: Arrivals, *, remark: str = "", peer_of: str = "") -> Result:
        """``sent`` events should have come, each reader's and call's as 0, 1, 2, …; order is that of what came."""
        ranked = sorted(arrivals.latencies_us) or [0]
        span_s = max(1e-6, (arrivals.last_us - arrivals.first_us) / 1e6)
        return cls(
            name=name,
            sent=sent,
            received=len(arrivals.latencies_us),
            in_order=all(a < b for numbers in arrivals.numbers for a, b in pairwise(numbers)),
            p50_ms=round(statistics.median(ranked) / 1000, 3),
            p99_ms=round(ranked[int(len(ranked) * 0.99)] / 1000, 3),
            max_ms=round(ranked[-1] / 1000, 3),
            events_per_s=round(len(arrivals.latencies_us) / span_s),
            remark=remark,
            peer_of=peer_of,
        )

    def as_dict(self) -> dict[str, Any]:
        """The fields for JSON."""
        return asdict(self)


def median_of(results: Sequence[Result]) -> Result:
    """The run in the middle by its median latency, so that a disturbed one does not count."""
    return sorted(results, key=lambda result: result.p50_ms)[len(results) // 2]
