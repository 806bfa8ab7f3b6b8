"""Reports of what happens in a run: modules coming up, the conversation with the agent, tool streams."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from dimos_streams import clock
from dimos_streams.cli.terminal.call_counts import NewEntries, is_refused
from dimos_streams.cli.terminal.output import write_json
from dimos_streams.cli.terminal.refusals import ShownRefusals
from dimos_streams.cli.terminal.screen import LogScreen, Screen, ScreenLine, create_screen
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.common.printable import printable
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.operator.agents import is_conversation, is_look

if TYPE_CHECKING:
    from dimos_streams.cli.terminal.log_files import LogLine
    from dimos_streams.runtime.events import RunEvent
    from dimos_streams.tool_stream.event import ToolEvent

_INPUTS, _SHOWN_INPUT = 1000, 40
_SHOWN_FIGURES = 6
_SHOWN_DATA = 120
"""Maximum length of what is shown of an update's data, in characters."""
_REASON = 1000
"""Maximum length of the reason why a call could not begin, in characters."""
_OUTCOME_STYLES = {"completed": "green", "cancelled": "yellow"}
_LEVEL_STYLES = {"WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}
_SHOWN_ROLES = ("operator", "assistant", "error", "note")
"""Roles of the conversation's entries that are shown; the others repeat tool streams."""
_ANOTHER_CLOCK_US = 60_000_000
"""The time in µs from which on an event that is still to come is by the clock of another machine."""


class Reporter(Protocol):
    """A reporter, which takes what happens, in order, and shows it."""

    def module_event(self, event: RunEvent) -> None:
        """Show that a process or module starts, is ready, fails, stops."""

    def tool_event(self, event: ToolEvent) -> None:
        """Show an event of any call."""

    def log_line(self, line: LogLine) -> None:
        """Show a line that a process of the run has logged."""

    def note(self, text: str, kind: str = "note", **data: Any) -> None:
        """Show something that the command itself has to say; ``kind`` and ``data`` are for scripts."""

    def close(self) -> None:
        """End the output: nothing more comes. Closing twice is fine."""


def create_reporter(*, as_json: bool, plain: bool = False, with_data: bool = False) -> Reporter:
    """Return a reporter on standard output; to be made where its clock is, on the loop. ``with_data`` has it show to
    people, too, what updates carry besides their text."""
    return JsonReporter() if as_json else TextReporter(create_screen(plain=plain), with_data=with_data)


def log_reporter() -> Reporter:
    """Return a reporter that writes to the log."""
    return TextReporter(LogScreen())


class JsonReporter:
    """A reporter with one JSON object a line. Its ``kind`` is ``module``, ``event``, ``log``, or that of a note."""

    def __init__(self) -> None:
        self._zero = _Zero()

    def module_event(self, event: RunEvent) -> None:
        """See ``Reporter``."""
        write_json(
            {
                "kind": "module",
                "time_s": self._elapsed(clock.utime()),
                "state": event.kind,
                "process": event.process,
                "module": event.module,
                "text": event.text,
            }
        )

    def tool_event(self, event: ToolEvent) -> None:
        """See ``Reporter``."""
        write_json({"kind": "event", "time_s": self._elapsed(event.utime), **event.to_dict()})

    def log_line(self, line: LogLine) -> None:
        """See ``Reporter``."""
        write_json({"kind": "log", "time_s": self._elapsed(line.utime or clock.utime()), **line.to_dict()})

    def note(self, text: str, kind: str = "note", **data: Any) -> None:
        """See ``Reporter``."""
        write_json({"kind": kind, "time_s": self._elapsed(clock.utime()), "text": text, **data})

    def close(self) -> None:
        """See ``Reporter``."""

    def _elapsed(self, utime: int) -> float:
        return round(self._zero.elapsed_s(utime), 3)


class _Zero:
    """The zero of a reporter's times: when it was made, or the first that it shows, if that happened before."""

    def __init__(self) -> None:
        self.utime = clock.utime()
        self._is_settled = False

    def elapsed_s(self, utime: int) -> float:
        """Return the seconds up to a time, in µs since the Unix epoch; negative for one before the zero. One that is
        far from having come is by another machine's clock, and counts as now."""
        now = clock.utime()
        if utime > now + _ANOTHER_CLOCK_US:
            utime = now
        if not self._is_settled:
            self.utime, self._is_settled = min(self.utime, utime), True
        return (utime - self.utime) / 1e6


class TextReporter:
    """A reporter with lines for people, with the seconds since it was made."""

    def __init__(self, screen: Screen, speaker: str = "run", *, with_data: bool = False) -> None:
        """``speaker`` is the label of what the command itself says; ``with_data`` is as for ``create_reporter``."""
        self._screen = screen
        self._speaker = speaker
        self._with_data = with_data
        self._zero = _Zero()
        self._started: dict[str, int] = {}
        self._labels = _Labels()
        self._entries = NewEntries()
        self._refusals = ShownRefusals()
        self._inputs = NewestEntries[str, str](_INPUTS)
        """The beginnings of what was said to agents, by the ids of these calls; of many the newest."""

    def module_event(self, event: RunEvent) -> None:
        """See ``Reporter``."""
        now = clock.utime()
        if event.kind == "starting" and not event.text:
            self._started[event.process] = now
            return
        if event.kind in ("stopping", "stopped") and not event.text:
            return
        name = event.module or event.process
        text = event.kind + (f": {event.text}" if event.text else "")
        if event.kind == "ready" and not clock.is_virtual():
            process = "" if event.process == name else f" in process {event.process}"
            text = f"ready{process} after {(now - self._started.get(event.process, self._zero.utime)) / 1e6:.2f} s"
        style = {"ready": "green", "failed": "red", "kept": "red", "restarting": "yellow"}.get(event.kind, "")
        self._show(name, text, style, now)

    def tool_event(self, event: ToolEvent) -> None:
        """See ``Reporter``."""
        if is_conversation(event):
            self._conversation(event)
        elif is_look(event):
            return
        elif event.type == "progress":
            text = f"… {event.text}{_figures(event.data)}"
            line = self._line(self._labels.of(event), text, "cyan", event.utime)
            self._screen.progress(event.call_id, line)
        else:
            text, style = _rendered(event)
            if self._with_data:
                text = f"{text}{_listed_data(_data_beside(event))}".lstrip()
            label = self._labels.of(event)
            if event.type == "close":
                self._screen.forget(event.call_id, leave=self._with_data and event.outcome != "completed")
                self._labels.forget(event)
            self._show(label, text, style, event.utime)

    def log_line(self, line: LogLine) -> None:
        """See ``Reporter``."""
        said = line.text if line.level is None else f"{line.level} {line.logger}: {line.text}"
        self._show(line.process, said, _LEVEL_STYLES.get(line.level or "", ""), line.utime or clock.utime())

    def note(self, text: str, kind: str = "note", **data: Any) -> None:
        """See ``Reporter``."""
        self._show(self._speaker, text, "", clock.utime())

    def close(self) -> None:
        """See ``Reporter``."""
        self._screen.close()

    def _conversation(self, event: ToolEvent) -> None:
        entry = event.data.get("entry")
        agent = event.module if "/" in event.module else "agent"
        if event.type == "open":
            self._remember(event)
        elif event.type == "close":
            text, style = _rendered(event)
            if event.outcome != "completed":
                # The reason stands there even if it was shown: whoever reads only the end reads it.
                text = f"{self._whose(event)}{self._refusals.shortened_in(text)}"
                self._show(agent, text, style, event.utime)
        elif isinstance(entry, Mapping) and self._entries.is_new(event.module, entry):
            role, text = str(entry.get("role")), str(entry.get("text", ""))
            if is_refused(entry):
                self._show_refusal(agent, str(entry.get("skill") or "a skill"), text, event.utime)
            elif role in _SHOWN_ROLES and (text := self._refusals.left_of(text)):
                mark = f"{role}: " if role in ("error", "note") else ""
                style = {"operator": "blue", "error": "red"}.get(role, "magenta")
                label = "you" if role == "operator" else agent
                self._show(label, mark + text, style, event.utime)

    def _remember(self, opened: ToolEvent) -> None:
        arguments = opened.data.get("arguments")
        text = str(arguments.get("text", "")) if isinstance(arguments, Mapping) else ""
        self._inputs[opened.call_id] = shortened(text, _SHOWN_INPUT)

    def _whose(self, closed: ToolEvent) -> str:
        """Return whose mission has ended, where several may be meant; empty if there is only one."""
        said = self._inputs.get(closed.call_id)
        if said is None:
            return "what was said before: " if self._inputs else ""
        return f"{said!r}: " if len(self._inputs) > 1 else ""

    def _show_refusal(self, agent: str, skill: str, text: str, utime: int) -> None:
        if len(text) <= _REASON:
            self._refusals.add(skill, text)
        self._show(agent, f"could not call {skill}: {shortened(text, _REASON)}", "yellow", utime)

    def _show(self, label: str, text: str, style: str, utime: int) -> None:
        self._screen.show(self._line(label, text, style, utime))

    def _line(self, label: str, text: str, style: str, utime: int) -> ScreenLine:
        return ScreenLine(max(0.0, self._zero.elapsed_s(utime)), label, text, style)


class _Labels:
    """Names for open calls: the skill, with a number if it runs more than once at a time."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[str, int]] = {}

    def of(self, event: ToolEvent) -> str:
        numbers = self._numbers.setdefault(event.skill, {})
        if event.call_id not in numbers:
            numbers[event.call_id] = next(n for n in range(1, len(numbers) + 2) if n not in numbers.values())
        number = numbers[event.call_id]
        return event.skill if number == 1 else f"{event.skill} #{number}"

    def forget(self, event: ToolEvent) -> None:
        self._numbers.get(event.skill, {}).pop(event.call_id, None)


def _rendered(event: ToolEvent) -> tuple[str, str]:
    """Return text and style of an event that stays on the screen."""
    if event.type == "open":
        arguments = event.data.get("arguments")
        given = _listed(arguments) if isinstance(arguments, Mapping) else ""
        return f"began ({given})  [{event.call_id}]", "cyan"
    if event.type == "gap":
        return f"some events are lost: {event.text}", "red"
    if event.outcome is None:
        return event.text, "cyan"
    style = _OUTCOME_STYLES.get(event.outcome, "red")
    has_said_nothing = event.text == "" or (event.text == "done" and event.data.get("result") is None)
    return (event.outcome if has_said_nothing else f"{event.outcome}: {event.text}"), style


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={shortened(json.dumps(v, ensure_ascii=False), 80)}" for name, v in values.items())


def _data_beside(event: ToolEvent) -> Mapping[str, Any]:
    """Return what an event carries that its text does not say: of an update, and the result of a call that has
    returned one and not completed."""
    if event.type == "update":
        return event.data
    result = event.data.get("result")
    return {} if event.outcome in (None, "completed") or result is None else {"result": result}


def _listed_data(data: Mapping[str, Any]) -> str:
    """Return what came with an update, as far as a line of people has room for it."""
    listed = shortened(_listed({name: _rounded(value) for name, value in data.items()}), _SHOWN_DATA)
    return f"  ({printable(listed)})" if listed else ""


def _rounded(value: Any) -> Any:
    """Return JSON with its fractions as exact as people read them."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return {name: _rounded(part) for name, part in value.items()} if isinstance(value, dict) else value


def _figures(data: Mapping[str, Any]) -> str:
    """Return the numbers that came with an event, as far as they fit on a line."""
    numbers = {name: v for name, v in data.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    listed = ", ".join(f"{name} {value:.3g}" for name, value in list(numbers.items())[:_SHOWN_FIGURES])
    return f"  ({listed})" if listed else ""
