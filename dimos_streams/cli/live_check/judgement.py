"""The judgement of what was heard, by what a blueprint needs."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from dimos_streams.cli.live_check.hearing import HeardChannel, Listener
from dimos_streams.cli.live_check.needs import Need, Use
from dimos_streams.cli.terminal.output import duration
from dimos_streams.documents.problem import Problem
from dimos_streams.errors import suggest
from dimos_streams.messages.codec import split_channel
from dimos_streams.streams.conversion import other_type

CLOCKS_AGREE_S = 1.0
"""The age, in seconds, above which stamps are called another clock's: no message takes so long."""
AHEAD_S = 0.02
"""The time, in seconds, above which stamps in the future are called another clock's."""
_MANY = 0.1
"""The part of the messages above which it is a fault that they can't be read, and not only worth a warning."""
_STILL = 3
"""Number of messages with one and the same stamp that mean a frozen sensor."""


class State(StrEnum):
    """The state of a topic, in words. The last four are no error."""

    OK = "ok"
    MISSING = "missing"
    OTHER_TYPE = "other type"
    UNREADABLE = "unreadable"
    NO_RAYS = "no rays"
    TOO_SLOW = "too slow"
    FROZEN = "frozen"
    DOUBTFUL = "doubtful"
    ABSENT = "absent"
    SILENT = "silent"
    NOT_WIRED = "not wired"
    NOT_RUNNING = "not running"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The judgement of one topic."""

    need: Need
    state: State
    heard: HeardChannel | None = None
    """The messages of a type that is taken, or None if none came."""
    problems: tuple[Problem, ...] = ()

    @property
    def delay_s(self) -> float | None:
        """The median delay from stamp to arrival, in seconds; None without stamps."""
        return statistics.median(self.heard.delays) if self.heard and self.heard.delays else None

    @property
    def clock_off_s(self) -> float | None:
        """The seconds by which the stamps' clock is behind this machine's or, below zero, ahead of it; None if they
        seem to agree."""
        least = min(self.heard.delays) if self.heard and self.heard.delays else 0.0
        return least if least < -AHEAD_S or least > CLOCKS_AGREE_S else None


def judge(needs: Sequence[Need], listener: Listener) -> list[Row]:
    """Return a row for each topic that matters."""
    judged = (_Judgement(need, listener).row() for need in needs)
    return [row for row in judged if row is not None]


class _Judgement:
    """The judgement of one topic."""

    def __init__(self, need: Need, listener: Listener) -> None:
        self._need, self._listener = need, listener
        self._heard_by_type = listener.of_topic(need.topic)

    def row(self) -> Row | None:
        """Return the row of the topic, or None if the topic has nothing to do with the run."""
        need = self._need
        wired = [use for use in need.uses if use.connected or use.required]
        if not wired:
            return self._row_of_unwired() if self._heard_of(need.types) else None
        if not self._heard_by_type:
            return self._row_of_silent(wired)
        deaf = [use for use in wired if not self._heard_of(use.taken)]
        if deaf:
            text = other_type(need.topic, self._heard_by_type, deaf[0].port.name, deaf[0].taken.values())
            return Row(need=need, state=State.OTHER_TYPE, problems=(_problem(text, deaf),))
        return self._row_of_heard(wired)

    def _heard_of(self, types: Iterable[str]) -> HeardChannel | None:
        """Return what came of one of the types, or None."""
        return next((self._heard_by_type[name] for name in types if name in self._heard_by_type), None)

    def _row_of_unwired(self) -> Row:
        """Return the row of a topic that is there but not connected to the inputs that could take it."""
        channel = f"{self._need.topic}#{next(name for name in self._need.types if name in self._heard_by_type)}"
        users = _names(self._need.uses)
        text = f"{self._need.topic} is there, but {users} would not hear it: add '{channel}' to external"
        problem = Problem(text, severity="warning")
        return Row(
            need=self._need, state=State.NOT_WIRED, heard=self._heard_of(self._need.types), problems=(problem,)
        )

    def _row_of_silent(self, wired: Sequence[Use]) -> Row:
        """Return the row of a topic on which nothing came."""
        need = self._need
        if need.senders and not self._listener.alive:
            return Row(need=need, state=State.NOT_RUNNING)
        if need.senders and self._listener.alive.isdisjoint(need.senders):
            text = f"{need.topic} is missing: {', '.join(need.senders)} is not running"
            return self._row_of_missing(text, wired)
        awaited = [use for use in wired if use.longest_gap_s is not None or (use.required and not need.senders)]
        if awaited:
            return self._row_of_missing(self._missing_text(awaited), awaited)
        required = [use for use in wired if use.required]
        text = f"nothing came on {need.topic}, which {_names(required)} needs: that may be as it should"
        problems = (Problem(text, severity="warning"),) if required else ()
        return Row(need=need, state=State.SILENT if need.senders else State.ABSENT, problems=problems)

    def _row_of_missing(self, text: str, uses: Sequence[Use]) -> Row:
        """Return the row of a topic on which something should have come."""
        problem = _problem(text, uses)
        state = State.MISSING if problem.severity == "error" else State.ABSENT
        return Row(need=self._need, state=state, problems=(problem,))

    def _missing_text(self, awaited: Sequence[Use]) -> str:
        need = self._need
        types = " or ".join(need.types)
        text = f"{need.topic} is missing: {_names(awaited)} would take {types}"
        split = [split_channel(channel) for channel in self._listener.channels]
        same = sorted(topic for topic, type_name in split if type_name in need.types and topic != need.topic)
        if same and not need.senders:
            return f"{text}; {_listed(same)} has that type: remap {awaited[0].port.name} to it"
        return text + suggest(need.topic, {topic for topic, _ in split})

    def _row_of_heard(self, wired: Sequence[Use]) -> Row:
        """Return the row of a topic on which messages came that its inputs take."""
        need = self._need
        heard = self._heard_of(wired[0].taken)
        assert heard is not None
        unusable = _why_unusable(need.topic, heard)
        if unusable is not None:
            state, texts = unusable
            return Row(need=need, state=state, heard=heard, problems=tuple(_problem(text, wired) for text in texts))
        late, pauses = self._slow(wired, heard)
        doubts = [Problem(f"{need.topic}: {doubt}", severity="warning") for doubt in heard.doubts]
        rare = [Problem(_unread_text(need.topic, heard), severity="warning")] if heard.skipped else []
        state = State.TOO_SLOW if late else State.DOUBTFUL if doubts else State.OK
        return Row(need=need, state=state, heard=heard, problems=(*late, *pauses, *doubts, *rare))

    def _slow(self, wired: Sequence[Use], heard: HeardChannel) -> tuple[list[Problem], list[Problem]]:
        """Return what is too slow for inputs, and what pauses there are where the mean is well."""
        topic, longest_s = self._need.topic, heard.traffic.longest_s
        late, pauses = [], []
        for gap, uses in _by_gap(wired):
            limit = f"{_names(uses)} {'take' if len(uses) > 1 else 'takes'} {gap:g} s without it at most"
            if why := self._why_late(heard, gap):
                late.append(_problem(f"{topic} {why}: {limit}", uses))
            elif longest_s > gap:
                text = f"{topic} has gaps of up to {longest_s:.2f} s: {limit}"
                pauses.append(Problem(text, severity="warning"))
        return late, pauses

    def _why_late(self, heard: HeardChannel, gap: float) -> str:
        listener = self._listener
        silent_s = listener.ended_at - heard.traffic.last
        mean_s = 1 / heard.traffic.rate_hz(listener.ended_at - listener.began_at)
        if silent_s > max(gap, 3 * mean_s):
            return f"fell silent {silent_s:.1f} s ago"
        return f"is too slow, a message every {mean_s:.2f} s" if mean_s > gap else ""


def _why_unusable(topic: str, heard: HeardChannel) -> tuple[State, list[str]] | None:
    """Return the state of a topic whose messages no input can use, and the reasons; None if they can be used."""
    if not heard.readable:
        return State.UNREADABLE, [f"{topic} can't be read: {heard.unreadable}"]
    if _unread_part(heard) >= _MANY:
        return State.UNREADABLE, [_unread_text(topic, heard)]
    faults = [*heard.faults]
    if heard.detections and not heard.labelled:
        faults.append("its detections have no labels (`results` is empty), and no description fits them")
    if faults:
        return State.UNREADABLE, [f"{topic}: {fault}" for fault in faults]
    if heard.blind:
        text = f"{topic} {heard.blind}: it counts as no scan, and the velocity gate only lets the robot turn"
        return State.NO_RAYS, [text]
    if len(heard.stamps) == 1 and heard.readable >= _STILL and len(heard.delays) == heard.readable:
        text = f"{topic} repeats one stamp, as a frozen sensor does: skills take that for nothing new"
        return State.FROZEN, [text]
    return None


def _unread_part(heard: HeardChannel) -> float:
    return heard.skipped / (heard.readable + heard.skipped)


def _unread_text(topic: str, heard: HeardChannel) -> str:
    return f"{topic}: {_unread_part(heard):.0%} of its messages can't be read: {heard.unreadable}"


def clock_problems(rows: Iterable[Row]) -> Iterator[Problem]:
    """Yield what is to be known of clocks that differ."""
    off = {row.need.topic: row.clock_off_s for row in rows if row.clock_off_s is not None}
    if not off:
        return
    said = ", ".join(f"{topic} by {duration(abs(s))} {'behind' if s > 0 else 'ahead'}" for topic, s in off.items())
    text = f"stamps are not of this machine's clock (or messages are that late): {said}; skills compare stamps with"
    text += " each other only"
    known = [row.clock_off_s or 0.0 for row in rows if row.delay_s is not None]
    if max(known) - min(known) > CLOCKS_AGREE_S:
        text += ", but these differ among themselves: what was seen is placed by when it arrived"
    yield Problem(text, severity="warning")


def _problem(text: str, uses: Sequence[Use]) -> Problem:
    """Return an error if one of the inputs is required, else a warning."""
    severe = any(use.required for use in uses)
    return Problem(text, severity="error" if severe else "warning")


def _names(uses: Sequence[Use]) -> str:
    return ", ".join(use.port.name for use in uses)


def _by_gap(uses: Iterable[Use]) -> list[tuple[float, list[Use]]]:
    """Return the inputs by how long they do without a message, the least patient first."""
    found: dict[float, list[Use]] = {}
    for use in uses:
        if use.longest_gap_s is not None:
            found.setdefault(use.longest_gap_s, []).append(use)
    return sorted(found.items())


def _listed(topics: Sequence[str]) -> str:
    return topics[0] if len(topics) == 1 else f"one of {', '.join(topics[:4])}"
