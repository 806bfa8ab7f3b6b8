"""The tables: calls, and what the recording itself is like."""

from __future__ import annotations

import json
from xml.etree.ElementTree import Element

from dimos_streams.common.names import namespace_of
from dimos_streams.recording.report.figures.axes import clock_text
from dimos_streams.recording.report.markup import Node, cut, h
from dimos_streams.recording.report.model import Recorded, ReportedCall
from dimos_streams.recording.report.way import Way

MOST_CALLS = 300
_MOST_CHANNELS = 200
_MOST_DAMAGES = 20
_MOST_GAPS = 20
_MAX_TEXT = 300
_MAX_ARGUMENTS = 200


def calls_table(recorded: Recorded) -> list[Node]:
    """Each call with how it ended, how long it took, and how far the robot went meanwhile."""
    if not recorded.calls:
        return [h("p", "No skill was called.", class_="quiet")]
    names = ("Began", "Skill", "Caller", "Outcome", "Took", "Robot went", "Updates", "What it said last")
    rows = [_call_row(call, recorded) for call in recorded.calls[:MOST_CALLS]]
    left = recorded.left_out + max(0, len(recorded.calls) - MOST_CALLS)
    more = h("p", f"{left} more calls are not shown.", class_="quiet") if left else None
    return [_table(names, rows), more]


def _call_row(call: ReportedCall, recorded: Recorded) -> Element:
    end = recorded.last if call.closed is None else call.closed
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False) if call.arguments else ""
    missing = f", {call.gaps} events missing" if call.gaps else ""
    cells: list[Node] = [
        clock_text((call.opened - recorded.first) / 1e6),
        [h("code", call.skill), h("div", cut(arguments, _MAX_ARGUMENTS), class_="quiet") if arguments else None],
        call.caller,
        h("span", (call.outcome or "open at the end").replace("_", " "), class_=f"outcome {call.outcome or 'open'}"),
        f"{(end - call.opened) / 1e6:.1f} s",
        _went(recorded.ways, call, end),
        f"{call.updates}{missing}",
        cut(call.text, _MAX_TEXT),
    ]
    return h("tr", [h("td", cell) for cell in cells])


def _went(ways: dict[str, Way], call: ReportedCall, end: int) -> str:
    """Return how far the call's robot went while it was open, or an empty text if the call can't have moved it."""
    way = ways.get(namespace_of(call.module))
    return f"{way.between(call.opened, end):.1f} m" if way is not None and call.resources else ""


def notes(recorded: Recorded) -> Node:
    """Return a list of what is damaged or not in the recording, or None if there is nothing to say."""
    found = []
    if recorded.metadata is None and recorded.summary.metadata_fault:
        found.append(f"What the log says of itself can't be read: {recorded.summary.metadata_fault}.")
    elif recorded.metadata is None:
        found.append("The log does not describe itself: another program wrote it, or its beginning is missing.")
    elif recorded.metadata.channels:
        found.append(_chosen(recorded))
    if recorded.damaged_bytes:
        places = "; ".join(recorded.damages[:_MOST_DAMAGES])
        found.append(f"It is damaged: {recorded.damaged_bytes} bytes were left out: {places}.")
    for began, length in recorded.summary.gaps[:_MOST_GAPS]:
        at = clock_text((began - recorded.summary.first) / 1e6)
        found.append(f"At {at} nothing at all was recorded for {length / 1e6:.1f} s.")
    if more := len(recorded.summary.gaps) - _MOST_GAPS:
        found += [f"{more} more such gaps."] * (more > 0)
    for set_back in recorded.summary.set_backs[:_MOST_GAPS]:
        at = clock_text((set_back.utime - recorded.summary.first) / 1e6)
        found.append(f"In the log {set_back}; its times go on from there, at {at}.")
    found += [f"In the log {impossible}." for impossible in recorded.summary.impossible[:_MOST_GAPS]]
    if recorded.summary.older.count:
        found.append(f"In the log {recorded.summary.older}.")
    if beyond := recorded.summary.beyond:
        first = len(recorded.summary.channels)
        found.append(f"{beyond.count} messages are of other channels than the first {first}, and are only counted.")
    for channel, count in recorded.unreadable.items():
        found.append(f"{count} messages of {channel} can't be read.")
    if recorded.repeated:
        found.append(f"{recorded.repeated} events of calls are in it more than once; each is shown once.")
    return h("ul", [h("li", text) for text in found]) if found else None


def _chosen(recorded: Recorded) -> str:
    assert recorded.metadata is not None
    only = [pattern for choice in recorded.metadata.channels for pattern in choice.include]
    without = [pattern for choice in recorded.metadata.channels for pattern in choice.exclude]
    parts = [f"only {', '.join(only)}" if only else "", f"without {', '.join(without)}" if without else ""]
    return f"Recorded was {' and '.join(filter(None, parts))}."


def channels_table(recorded: Recorded) -> Element:
    """The channels, folded away."""
    summary = recorded.summary
    names = ("Topic", "Type", "Messages", "Rate", "Longest silence")
    rows = []
    for channel in list(summary.channels.values())[:_MOST_CHANNELS]:
        rate = "" if channel.rate_hz is None else f"{channel.rate_hz:.1f} Hz"
        gap = "" if channel.gap_s is None else f"{channel.gap_s:.1f} s"
        cells = (channel.topic, channel.type_name or "?", str(channel.count), rate, gap)
        rows.append(h("tr", [h("td", cell) for cell in cells]))
    title = f"{summary.events} messages on {len(summary.channels)} channels"
    return h("details", h("summary", title), _table(names, rows))


def _table(names: tuple[str, ...], rows: list[Element]) -> Element:
    head = h("thead", h("tr", [h("th", name, scope="col") for name in names]))
    return h(
        "div", h("table", head, h("tbody", rows)), class_="wide", tabindex="0", role="region", aria_label=names[1]
    )
