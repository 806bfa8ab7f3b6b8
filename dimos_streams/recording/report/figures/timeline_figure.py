"""The timeline of calls: a bar for each from its open to its close, with its updates; below, who held the robot."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element

from dimos_streams.recording.report.figures.axes import Axis, clock_text, time_ticks
from dimos_streams.recording.report.markup import Node, cut, h, number, with_attributes
from dimos_streams.recording.report.model import KeyMoment, Recorded, ReportedCall

_WIDTH, _NAMES, _ROW = 960.0, 190.0, 22.0
_MOST_ROWS = 100
_MOST_DEEP = 4
_MOST_TICKS = 60
_MAX_TITLE = 120


def timeline_figure(recorded: Recorded) -> Element | None:
    """The timeline, or None if there was no call."""
    calls = recorded.calls[:_MOST_ROWS]
    if not calls:
        return None
    span_s = max(0.1, (recorded.last - recorded.first) / 1e6)
    axis = Axis(0.0, span_s, _NAMES, _WIDTH - 8.0)
    lanes = _lanes(recorded, calls)
    height = _ROW * (len(calls) + len(lanes)) + 26.0
    rows = [_row(index, call, axis, recorded) for index, call in enumerate(calls)]
    below = [
        _lane(len(calls) + index, name, spans, axis, recorded.first)
        for index, (name, spans) in enumerate(lanes.items())
    ]
    label = f"Timeline of {len(recorded.calls)} calls over {clock_text(span_s)}; the table of calls has them as text"
    drawing = h("svg", _clock(axis, span_s, height), rows, below, role="img", aria_label=label, class_="timeline")
    return with_attributes(drawing, {"viewBox": f"0 0 {number(_WIDTH)} {number(height)}"})


def more_calls(recorded: Recorded) -> int:
    """Return the number of calls that the timeline does not show."""
    return recorded.left_out + max(0, len(recorded.calls) - _MOST_ROWS)


Span = tuple[int, int, str]


def _lanes(recorded: Recorded, calls: Iterable[ReportedCall]) -> dict[str, list[Span]]:
    """Return the lanes below the calls: what was leased to whom, and who held the robot still."""
    lanes: dict[str, list[Span]] = {}
    for call in calls:
        for resource in call.resources:
            end = recorded.last if call.closed is None else call.closed
            lanes.setdefault(f"lease: {resource}", []).append((call.opened, end, call.skill))
    if recorded.holds:
        lanes["held still"] = recorded.holds
    return lanes


def _clock(axis: Axis, span_s: float, height: float) -> Element:
    marks: list[Node] = []
    for seconds in time_ticks(span_s, 10):
        x = axis(seconds)
        marks.append(h("line", x1=x, x2=x, y1=0.0, y2=height - 18))
        marks.append(h("text", clock_text(seconds), x=x, y=height - 5, text_anchor="middle"))
    return h("g", marks, class_="clock")


def _row(index: int, call: ReportedCall, axis: Axis, recorded: Recorded) -> Element:
    y, first = index * _ROW, recorded.first
    begin = axis((call.opened - first) / 1e6)
    end = axis(((recorded.last if call.closed is None else call.closed) - first) / 1e6)
    deep = min(_MOST_DEEP, call.call_id.count("~"))
    state = call.outcome or "open"
    return h(
        "g",
        h("title", f"{cut(call.label, _MAX_TITLE)}, {state}: {call.text}"),
        h("text", cut(call.label, 26 - 2 * deep), x=8.0 + 12 * deep, y=y + 15),
        h("rect", x=begin, y=y + 4, width=max(3.0, end - begin), height=_ROW - 8, rx=3.0, class_=f"bar {state}"),
        [_tick(axis((moment.utime - first) / 1e6), y, moment) for moment in _ticks(call)],
        class_="call",
    )


def _ticks(call: ReportedCall) -> list[KeyMoment]:
    return [moment for moment in call.moments if moment.type in ("update", "gap")][:_MOST_TICKS]


def _tick(x: float, y: float, moment: KeyMoment) -> Element:
    return h("line", h("title", moment.text), x1=x, x2=x, y1=y + 3, y2=y + _ROW - 3, class_=f"tick {moment.type}")


def _lane(index: int, name: str, spans: list[Span], axis: Axis, first: int) -> Element:
    y = index * _ROW
    bars = []
    for began, ended, text in spans:
        begin, end = axis((began - first) / 1e6), axis((ended - first) / 1e6)
        bar = h("rect", h("title", text), x=begin, y=y + 7, width=max(2.0, end - begin), height=_ROW - 14)
        bars.append(bar)
    return h("g", h("text", cut(name, 28), x=8.0, y=y + 15), bars, class_="held" if name == "held still" else "lease")
