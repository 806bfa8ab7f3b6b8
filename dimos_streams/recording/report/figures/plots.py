"""Figures: each series as a line over time."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from dimos_streams.recording.report.figures.axes import Axis, clock_text, time_ticks
from dimos_streams.recording.report.markup import h, number, with_attributes
from dimos_streams.recording.report.model import Recorded
from dimos_streams.recording.report.series import PlottedSeries

MOST = 24
_WIDTH, _HEIGHT = 460.0, 150.0
_LEFT, _BOTTOM = 44.0, 20.0
_POINTS = 600
_BREAK_US = 3_000_000
"""The silence, in µs, over which no line is drawn if it is also unusual."""
_UNUSUAL = 10
"""A silence is unusual if it is this many times as long as the mean distance of the points."""


def plots(recorded: Recorded) -> list[Element]:
    """A figure for each series that changes or lasts."""
    series = [(title, one) for title, one in recorded.series.items() if len(one.points) > 1]
    return [_plot(title, one, recorded) for title, one in series[:MOST]]


def _plot(title: str, series: PlottedSeries, recorded: Recorded) -> Element:
    values = [value for _, value in series.points]
    low, high = min(*values, 0.0), max(*values, 0.0)
    if low == high:
        high = low + 1.0
    span_s = max(0.1, (recorded.last - recorded.first) / 1e6)
    along, up = Axis(0.0, span_s, _LEFT, _WIDTH - 8), Axis(low, high, _HEIGHT - _BOTTOM, 8.0)
    lines = [h("polyline", points=" ".join(part)) for part in _parts(series, along, up, recorded.first)]
    label = f"{title}: from {min(values):g} to {max(values):g}, at the end {values[-1]:g}"
    drawing = h("svg", _axes(along, up, span_s), lines, role="img", aria_label=label, class_="plot")
    with_attributes(drawing, {"viewBox": f"0 0 {number(_WIDTH)} {number(_HEIGHT)}"})
    return h("figure", h("figcaption", title), drawing)


def _axes(along: Axis, up: Axis, span_s: float) -> Element:
    marks = []
    for value in up.ticks(4):
        y = up(value)
        marks += [h("line", x1=_LEFT, x2=_WIDTH - 8, y1=y, y2=y)]
        marks += [h("text", f"{value:.6g}", x=_LEFT - 5, y=y + 4, text_anchor="end")]
    for seconds in time_ticks(span_s, 6):
        marks += [h("text", clock_text(seconds), x=along(seconds), y=_HEIGHT - 5, text_anchor="middle")]
    return h("g", marks, class_="clock")


def _parts(series: PlottedSeries, along: Axis, up: Axis, first: int) -> list[list[str]]:
    """The line, broken where nothing was said for long."""
    parts: list[list[str]] = [[]]
    before: int | None = None
    points = series.downsampled(_POINTS)
    silence_us = max(_BREAK_US, _UNUSUAL * (points[-1][0] - points[0][0]) // len(points))
    for utime, value in points:
        if before is not None and utime - before > silence_us:
            parts.append([])
        before = utime
        parts[-1].append(f"{number(along((utime - first) / 1e6))},{number(up(value))}")
    return [part if len(part) > 1 else [*part, *part] for part in parts]
