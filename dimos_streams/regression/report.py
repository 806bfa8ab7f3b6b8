"""The report of a comparison."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from dimos_streams.common.readable.plural import plural
from dimos_streams.regression.comparison import PROGRESS, Series
from dimos_streams.regression.matching import Difference, StreamResult
from dimos_streams.regression.tolerances import Tolerances

_SHOWN_FIELDS = 6


@dataclass(frozen=True, kw_only=True)
class Report:
    """The result of replaying a log through modules."""

    log: str
    modules: tuple[str, ...]
    tolerances: Tolerances
    streams: list[StreamResult]
    start_utime: int
    """The start of the log; times are relative to it."""
    span_s: float
    calls: int
    """The number of calls that were made again."""
    inputs: int
    settings: tuple[str, ...] = ()
    """The settings whose values are not those of the recorded run."""
    remarks: tuple[str, ...] = ()
    """Remarks that a reader should know, though they are no differences."""
    problem: str = ""
    """The reason why nothing, or not all, could be compared; empty if there is none."""
    updated: bool = False
    series: dict[tuple[str, str], Series] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """True if the outputs agree within the tolerances."""
        return not self.problem and all(stream.passed(self.tolerances.unmatched) for stream in self.streams)

    @property
    def first(self) -> Difference | None:
        """The earliest difference in a stream that has not passed, or None if all have passed; of several at one
        instant, the one in what a call showed, for it says more than the messages that came of it, and rather in how
        it went on and ended than in its progress, which may be missing for that."""
        failed = [stream.first for stream in self.streams if not stream.passed(self.tolerances.unmatched)]
        found = (one for one in failed if one is not None)
        return min(found, key=lambda one: (one.utime, _rank(one.stream)), default=None)

    def lines(self) -> Iterator[str]:
        """Yield the report's lines for people."""
        verdict = "passed" if self.passed else "FAILED"
        yield (
            f"{verdict}: {', '.join(self.modules)} on {self.span_s:.1f} s of {self.log}: "
            f"{plural(self.inputs, 'input')}, {plural(self.calls, 'call')}"
        )
        if self.problem:
            yield f"  {self.problem}"
        for setting in () if self.passed else self.settings:
            yield f"  setting {setting}"
        if (first := self.first) is not None:
            yield from self._first_lines(first)
        for stream in self.streams:
            yield f"  {self._stream_line(stream)}"
            if stream.close and not stream.passed(self.tolerances.unmatched):
                yield f"       close: {stream.close}"
        for remark in self.remarks:
            yield f"  {remark}"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data for JSON."""
        streams = []
        for stream in self.streams:
            fields = asdict(stream)
            fields["passed"] = stream.passed(self.tolerances.unmatched)
            fields["worst"] = {name: _finite(amount) for name, (amount, _) in stream.worst.items()}
            fields["first"] = self._difference(stream.first)
            streams.append(fields)
        return {
            "log": self.log,
            "modules": list(self.modules),
            "passed": self.passed,
            "problem": self.problem,
            "first": self._difference(self.first),
            "streams": streams,
            "inputs": self.inputs,
            "calls": self.calls,
            "span_s": round(self.span_s, 3),
            "settings": list(self.settings),
            "remarks": list(self.remarks),
            "updated": self.updated,
        }

    def _difference(self, difference: Difference | None) -> dict[str, Any] | None:
        if difference is None:
            return None
        fields = [asdict(one) | {"amount": _finite(one.amount)} for one in difference.fields]
        return asdict(difference) | {"fields": fields, "at_s": self._at_s(difference.utime)}

    def _first_lines(self, first: Difference) -> Iterator[str]:
        where = f"  first difference after {self._at_s(first.utime):.3f} s, in {first.stream}"
        if first.what == "missing":
            yield f"{where}: not given again: {first.text}"
        elif first.what == "extra":
            yield f"{where}: not in the recording: {first.text}"
        else:
            yield f"{where}, {first.text}" if first.text.startswith(("open", "update", "close")) else f"{where}:"
            for one in first.fields[:_SHOWN_FIELDS]:
                yield f"    {one}"
            if len(first.fields) > _SHOWN_FIELDS:
                yield f"    ... {len(first.fields)} fields in all"

    def _stream_line(self, stream: StreamResult) -> str:
        passed = stream.passed(self.tolerances.unmatched)
        parts = [f"{'ok  ' if passed else 'FAIL'} {stream.stream}: {stream.matched} of {stream.recorded} agree"]
        if stream.different:
            parts.append(f"{stream.different} differ")
        if stream.missing:
            parts.append(f"{stream.missing} missing")
        if stream.extra:
            parts.append(f"{stream.extra} too many")
        if stream.by_others:
            parts.append(f"{stream.by_others} by other modules")
        if stream.by_earlier:
            parts.append(f"{stream.by_earlier} during earlier calls")
        worst = sorted(stream.worst.items(), key=lambda item: -item[1][0])[:3]
        if worst:
            parts.append("at most " + ", ".join(f"{name} by {amount:.4g}" for name, (amount, _) in worst))
        return ", ".join(parts)

    def _at_s(self, utime: int) -> float:
        return (utime - self.start_utime) / 1e6


def _rank(stream: str) -> int:
    """Return the place of a stream among those that differ at one instant."""
    return 2 if stream.startswith("/") else 1 if stream.endswith(PROGRESS) else 0


def _finite(amount: float | None) -> float | None:
    """An amount as JSON has it, where infinity is null; the difference's texts show what was there."""
    return amount if amount is not None and math.isfinite(amount) else None
