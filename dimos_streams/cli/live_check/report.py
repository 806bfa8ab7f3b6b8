"""The outcome of a live check, for people and for scripts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dimos_streams.cli.live_check.judgement import Row
from dimos_streams.cli.live_check.needs import Use
from dimos_streams.cli.terminal.output import duration
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.documents.problem import Problem

HEADERS = ("TOPIC", "STATE", "RATE", "DELAY", "CARRIES", "FROM", "FOR")
_WIDTH = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveReport:
    """The findings on a bus within a time."""

    bus: str
    seconds: float
    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]

    def table(self) -> list[tuple[str, ...]]:
        """Return the cells of a table, a row for each topic."""
        return [_cells(row, self.seconds) for row in self.rows]

    def to_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        topics = [_to_dict(row, self.seconds) for row in self.rows]
        return {"bus": self.bus, "seconds": self.seconds, "topics": topics}


def _cells(row: Row, seconds: float) -> tuple[str, ...]:
    heard = row.heard
    rate = f"{heard.traffic.rate_hz(seconds):.1f} Hz" if heard else ""
    carries = ", ".join(heard.contents) if heard else ""
    users = ", ".join(map(_user, row.need.uses))
    sender = ", ".join(row.need.senders) or "outside"
    return row.need.topic, row.state, rate, _delay(row), shortened(carries, _WIDTH), sender, users


def _delay(row: Row) -> str:
    if row.heard is None or not row.heard.readable:
        return ""
    if row.delay_s is None:
        return "no stamp" if row.heard.unstamped else ""
    off = row.clock_off_s
    if off is None:
        return f"{row.delay_s * 1000:.0f} ms"
    return f"clock {duration(abs(off))} {'behind' if off > 0 else 'ahead'}"


def _user(use: Use) -> str:
    return use.port.module if use.required else f"{use.port.module}?"


def _to_dict(row: Row, seconds: float) -> dict[str, Any]:
    need, heard = row.need, row.heard
    return {
        "topic": need.topic,
        "types": list(need.types),
        "state": row.state.value,
        "senders": list(need.senders),
        "inputs": [_use_to_dict(use) for use in need.uses],
        "rate_hz": round(heard.traffic.rate_hz(seconds), 3) if heard else None,
        "longest_interval_s": round(heard.traffic.longest_s, 3) if heard else None,
        "delay_s": None if row.delay_s is None else round(row.delay_s, 6),
        "clock_off_s": None if row.clock_off_s is None else round(row.clock_off_s, 6),
        "carries": list(heard.contents) if heard else [],
    }


def _use_to_dict(use: Use) -> dict[str, Any]:
    return {"name": use.port.name, "required": use.required, "longest_gap_s": use.longest_gap_s}
