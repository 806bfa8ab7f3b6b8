"""The events that hold until others replace them: what the operator has set, and what was learnt of servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from dimos_streams.agent.control.control import Mode
from dimos_streams.agent.record.agent_events import EventKind, lesson_of
from dimos_streams.operator.messages.agent import AgentEvent

Setting: TypeAlias = tuple[str, ...]
"""The name of what an event sets: ``MODE`` and the like, or a kind with what distinguishes settings of that kind."""
MODE: Setting = ("mode",)
_MODES: Mapping[str, Mode] = {
    EventKind.PAUSE: Mode.PAUSED,
    EventKind.RESUME: Mode.RUNNING,
    EventKind.STEP: Mode.STEPPING,
}
_ORDERS = (*MODE, EventKind.MODEL_SWITCH, EventKind.SKILL_SET)


class StandingEvents:
    """Keeps the newest event of each such setting, however long ago it was. There is one for each thing that was
    set."""

    def __init__(self) -> None:
        self._newest: dict[Setting, AgentEvent] = {}
        self._unwritten: dict[Setting, object] = {}
        """The values by all that was written, for the settings of which a newer event could not be written yet."""

    @property
    def events(self) -> tuple[AgentEvent, ...]:
        """The events, oldest first. A process that begins with them and nothing else has every setting."""
        return tuple(sorted(self._newest.values(), key=lambda event: event.number))

    def apply(self, event: AgentEvent) -> None:
        """Take in an event, if it is one that stands. It counts as unwritten until ``note_written``."""
        setting = _setting(event)
        if setting is not None:
            before = self._newest.get(setting)
            self._unwritten.setdefault(setting, _was(event) if before is None else _is(before))
            self._newest[setting] = event

    def note_written(self) -> None:
        """Note that all events so far are written, or others that stand for them."""
        self._unwritten.clear()

    def is_kept(self, setting: Setting) -> bool:
        """Return whether a process that goes by what was written has this setting as it is."""
        return setting not in self._unwritten or self._unwritten[setting] == _is(self._newest[setting])

    @property
    def lacks_order(self) -> bool:
        """True if such a process would not have what an operator has set, and so might let more begin."""
        return any(setting[0] in _ORDERS and not self.is_kept(setting) for setting in self._unwritten)


def _setting(event: AgentEvent) -> Setting | None:
    """The setting that an event is about, or None for an event that leaves all as it was."""
    step = EventKind.STEP.data_of(event)
    if event.kind in _MODES and (step is None or step["phase"] == "on"):
        return MODE
    if event.kind in (EventKind.MODEL_SWITCH, EventKind.FORGOTTEN, EventKind.CONSOLE):
        return (event.kind,)
    if skill_set := EventKind.SKILL_SET.data_of(event):
        return event.kind, skill_set["skill"]
    if lesson := lesson_of(event):
        return "lesson", *lesson
    return None


def _is(event: AgentEvent) -> object:
    """Return the value of a setting after its event: the event itself where no other one says the same."""
    if event.kind in _MODES:
        return _MODES[event.kind]
    if switch := EventKind.MODEL_SWITCH.data_of(event):
        return switch["model"]
    skill_set = EventKind.SKILL_SET.data_of(event)
    return skill_set["enabled"] if skill_set else event


def _was(event: AgentEvent) -> object:
    """Return the value of a setting before its first event; None where that has no other name."""
    if switch := EventKind.MODEL_SWITCH.data_of(event):
        return switch["was"]
    if mode := EventKind.PAUSE.data_of(event) or EventKind.RESUME.data_of(event):
        return mode["was"]
    if (step := EventKind.STEP.data_of(event)) and step["phase"] == "on":
        return step["was"]
    skill_set = EventKind.SKILL_SET.data_of(event)
    return not skill_set["enabled"] if skill_set else None
