"""The page: one file, without scripts, that loads nothing from anywhere."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from importlib.resources import files
from xml.etree.ElementTree import Element

from dimos_streams.common.json.reading import parse_json
from dimos_streams.common.readable.dates import utc_text
from dimos_streams.common.readable.plural import plural
from dimos_streams.recording.report.figures.axes import clock_text
from dimos_streams.recording.report.figures.map_figure import COLOURS, map_figure
from dimos_streams.recording.report.figures.plots import plots
from dimos_streams.recording.report.figures.timeline_figure import more_calls, timeline_figure
from dimos_streams.recording.report.markup import Node, cut, document, h, with_attributes
from dimos_streams.recording.report.model import ConversationLine, DetectionBox, KeyFrame, Recorded, ReportedCall
from dimos_streams.recording.report.tables import calls_table, channels_table, notes

_MAX_TITLE = 120
_LONG_LINE = 600
_MAX_LABEL = 28


def page(recorded: Recorded) -> str:
    """The whole text."""
    style = (files(__package__) / "style.css").read_text(encoding="utf-8")
    title = cut(_title(recorded), _MAX_TITLE)
    head = h(
        "head",
        h("meta", charset="utf-8"),
        with_attributes(h("meta", content=policy(style)), {"http-equiv": "Content-Security-Policy"}),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("meta", name="referrer", content="no-referrer"),
        h("title", title),
        _style(style),
    )
    body = h("body", _header(recorded, title), h("main", _sections(recorded)))
    return document(h("html", head, body, lang="en"))


def policy(style: str) -> str:
    """Return what a browser may do with the page: show its one style and the pictures in it, nothing else."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _style(text: str) -> Element:
    found = h("style")
    found.text = text  # the stylesheet itself: what is shown as text would be another one, and not the policy's
    return found


def _title(recorded: Recorded) -> str:
    """Return the operator's first words and the number of further missions, or else the skills that were called, or
    else the blueprint's name."""
    said = next((line.text for line in recorded.lines if line.role == "operator"), "")
    if said:
        more = len(recorded.missions) - 1
        also = f" and {plural(more, 'more mission')}" if more > 0 else ""
        return f"{cut(said, _MAX_TITLE - len(also))}{also}"
    skills = dict.fromkeys(call.skill for call in recorded.calls)
    name = str(((recorded.metadata and recorded.metadata.blueprint) or {}).get("name", ""))
    return ", ".join(skills) or name or "A recording"


def _header(recorded: Recorded, title: str) -> Element:
    metadata = recorded.metadata
    parts = [utc_text(recorded.first)]
    if metadata is not None:
        name = str((metadata.blueprint or {}).get("name", ""))
        parts += [f"blueprint {name}" if name else "", f"{metadata.mode} run" if metadata.mode else ""]
        parts += [f"seed {metadata.seed}", f"dimos-streams {metadata.version}"]
    return h(
        "header", h("p", "Recorded mission", class_="over"), h("h1", title), h("p", " · ".join(filter(None, parts)))
    )


def _sections(recorded: Recorded) -> list[Node]:
    return [
        _tiles(recorded),
        _figure("Map", map_figure(recorded), "No robot has said where it is.", _legend(recorded)),
        _figure("Calls over time", timeline_figure(recorded), "No skill was called.", _outcomes(recorded)),
        _frames(recorded),
        _conversation(recorded),
        _plots(recorded),
        h("section", h("h2", "Calls"), *calls_table(recorded)),
        h("section", h("h2", "The recording"), notes(recorded), channels_table(recorded)),
    ]


def _tiles(recorded: Recorded) -> Element:
    """The mission in figures."""
    span_s = (recorded.last - recorded.first) / 1e6
    tiles = [("Duration", clock_text(span_s)), ("Calls", str(len(recorded.calls) + recorded.left_out))]
    tiles += [
        (f"Distance, {robot}" if robot else "Distance", f"{way.distance_m:.1f} m")
        for robot, way in list(recorded.ways.items())[:8]
    ]
    counted = Counter(call.outcome or "open at the end" for call in recorded.calls)
    tiles += [(outcome.replace("_", " "), str(count)) for outcome, count in counted.items()]
    tiles += [("Events missing", str(sum(call.gaps for call in recorded.calls)))] * any(
        call.gaps for call in recorded.calls
    )
    pairs = [h("div", h("dt", name), h("dd", value)) for name, value in tiles]
    return h("section", h("h2", "Summary"), h("dl", pairs, class_="tiles"))


def _figure(title: str, drawing: Element | None, otherwise: str, caption: Node) -> Element:
    if drawing is None:
        return h("section", h("h2", title), h("p", otherwise, class_="quiet"))
    return h("section", h("h2", title), h("figure", drawing, h("figcaption", caption)))


def _legend(recorded: Recorded) -> Node:
    """The map's signs, those that it has."""
    scene = recorded.scene
    keys = [("way", f"c{index % COLOURS}", robot or "robot") for index, robot in enumerate(recorded.ways)]
    keys += [("person", f"p{index % COLOURS}", label) for index, label in enumerate(scene.people)]
    keys += [("zone", "", "restricted zone")] * bool(scene.zones)
    keys += [("waypoint", "", "way-point")] * bool(scene.waypoints)
    keys += [("goal", "", "goal of a call")] * bool(scene.goals)
    keys += [("obstacle", "", "seen by the lidar")] * bool(scene.obstacles)
    keys += [("mark", "", "key frame, by number")] * bool(recorded.frames)
    return _keys(keys)


def _outcomes(recorded: Recorded) -> Node:
    found = dict.fromkeys(call.outcome or "open" for call in recorded.calls)
    keys = [("bar", outcome, outcome.replace("_", " ")) for outcome in found]
    more = more_calls(recorded)
    return [_keys([*keys, ("tick", "", "update")]), f"{more} more calls are not shown." if more else None]


def _keys(keys: list[tuple[str, str, str]]) -> Element:
    return h(
        "ul", [h("li", h("i", class_=f"key {kind} {own}".strip()), text) for kind, own, text in keys], class_="keys"
    )


def _frames(recorded: Recorded) -> Element:
    shown = [_frame(index, frame, recorded) for index, frame in enumerate(recorded.frames, start=1)]
    if shown:
        body: Node = h("ol", shown, class_="frames")
    elif recorded.has_pictures:
        body = h("p", "No picture was taken near a call's events.", class_="quiet")
    else:
        body = h("p", "There are no pictures in the recording.", class_="quiet")
    left = recorded.frames_left_out
    more = h("p", f"{left} pictures were left out: they are too large.", class_="quiet") if left else None
    return h("section", h("h2", "Key frames"), body, more)


def _frame(index: int, frame: KeyFrame, recorded: Recorded) -> Element:
    source = "data:image/jpeg;base64," + base64.b64encode(frame.jpeg).decode()
    picture = with_attributes(h("image", width=float(frame.width), height=float(frame.height)), {"href": source})
    boxes = [_box(box, frame) for box in frame.boxes]
    words = f"Picture {index}: {', '.join(box.label for box in frame.boxes) or 'nothing detected'}"
    drawing = h("svg", picture, boxes, role="img", aria_label=words)
    with_attributes(drawing, {"viewBox": f"0 0 {max(1, frame.width)} {max(1, frame.height)}"})
    captions = [
        h("p", h("b", clock_text((utime - recorded.first) / 1e6)), " ", text) for utime, text in frame.captions[:4]
    ]
    return h("li", h("figure", drawing, h("figcaption", h("span", str(index), class_="number"), captions)))


def _box(box: DetectionBox, frame: KeyFrame) -> Element:
    size = frame.height / 22
    is_right = box.x > frame.width / 2
    label = h(
        "text",
        cut(box.label, _MAX_LABEL),
        x=box.x + box.width if is_right else box.x,
        y=max(size, box.y - size / 3),
        font_size=size,
        text_anchor="end" if is_right else None,
    )
    return h("g", h("rect", x=box.x, y=box.y, width=box.width, height=box.height), label, class_="box")


def _conversation(recorded: Recorded) -> Element:
    missions, first = recorded.missions, recorded.first
    parts = _parts(recorded.lines)
    is_plain = all(not lines[0].mission for lines in parts)
    talks: list[Node] = [
        [None if is_plain else _heading(missions.get(lines[0].mission), lines, first), _talk(lines, first)]
        for lines in parts
    ]
    left = recorded.lines_left_out
    return h(
        "section",
        h("h2", "Conversation"),
        *(talks or [h("p", "Nobody said anything.", class_="quiet")]),
        h("p", f"{left} more lines are not shown.", class_="quiet") if left else None,
    )


def _parts(lines: list[ConversationLine]) -> list[list[ConversationLine]]:
    """The lines of each mission, in the order in which missions begin; between them those that belong to none."""
    parts: dict[tuple[str, int], list[ConversationLine]] = {}
    begun: set[str] = set()
    for line in lines:
        if line.mission:
            begun.add(line.mission)
        parts.setdefault((line.mission, 0 if line.mission else len(begun)), []).append(line)
    return list(parts.values())


def _heading(mission: ReportedCall | None, lines: list[ConversationLine], first: int) -> Node:
    if mission is not None:
        return _mission(mission, lines, first)
    return h("h3", "A mission that is not shown among the calls" if lines[0].mission else "Outside of a mission")


def _mission(call: ReportedCall, lines: list[ConversationLine], first: int) -> Node:
    """The heading of a mission: what was said, when, and how it ended."""
    said = next((line.text for line in lines if line.role == "operator"), "")
    reason = call.result.get("reason") if isinstance(call.result, Mapping) else None
    how = call.outcome.replace("_", " ") or "open at the end"
    why = f" ({reason.replace('_', ' ')})" if isinstance(reason, str) and reason not in ("", call.outcome) else ""
    took = "" if call.closed is None else f" after {(call.closed - call.opened) / 1e6:.1f} s"
    when = clock_text((call.opened - first) / 1e6)
    return [
        h("h3", cut(said or call.text, _MAX_TITLE)),
        h("p", f"{when} · {cut(how + why, _MAX_TITLE)}{took}", class_="quiet"),
    ]


def _talk(lines: list[ConversationLine], first: int) -> Element:
    return h("ol", [_line(line, first) for line in lines], class_="talk")


def _line(line: ConversationLine, first: int) -> Element:
    head = h("div", h("b", line.who), h("span", clock_text((line.utime - first) / 1e6), class_="when"))
    text, more = line.text[:_LONG_LINE], line.text[_LONG_LINE:]
    hidden = "\n".join(part for part in (f"…{more}" if more else "", line.details) if part)
    folded = h("details", h("summary", "details"), h("pre", _pretty(hidden))) if hidden else None
    bad = " bad" if line.is_error else ""
    return h("li", head, h("p", text) if text else None, folded, class_=f"{line.role}{bad}")


def _pretty(text: str) -> str:
    """JSON with its structure; any other text as it is."""
    try:
        return json.dumps(parse_json(text), ensure_ascii=False, indent=2)
    except ValueError:
        return text


def _plots(recorded: Recorded) -> Node:
    drawn = plots(recorded)
    return h("section", h("h2", "Figures"), h("div", drawn, class_="plots")) if drawn else None
