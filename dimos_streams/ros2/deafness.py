"""The detection of faults of DDS that only leaving and entering it anew mends: topics whose messages it discards, and
participants that it has forgotten while they still remember this one, with what is missed meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Mapping

DEAF_S = 30.0
"""Seconds of silence after which a topic whose writer is there counts as one that can't be heard. A robot behind a
cut link is gone by then: its lease is 10 s in Cyclone DDS, and 20 s in Fast DDS."""

MUTE_S = 5.0
"""Seconds after which a participant that is back counts as one that announces nothing any more; others announce what
they have within one."""
_MOST_GONE = 1000
_MOST_TOPICS = 1000


class Deafness:
    """Finds streams that have fallen silent although their writers are there.

    DDS discards a message whose number is below that of an earlier one, and anybody who reaches its ports can send a
    message with a large number in a writer's name. Nothing else shows it then: the writer is matched and alive, and
    no message counts as lost.
    """

    def __init__(self) -> None:
        self._matched_since: dict[str, float] = {}

    def deaf(self, now: float, matched: Collection[str], heard: Mapping[str, float]) -> list[str]:
        """Return the streams that were heard, and are silent for ``DEAF_S`` though their writers have been there.

        ``matched`` are those whose writers are there now, ``heard`` the times at which streams were heard last. One
        that was never heard is silent for another reason, as it is after this one was mended in vain.
        """
        before = self._matched_since
        self._matched_since = {name: before.get(name, now) for name in matched}
        return [
            name
            for name, since in self._matched_since.items()
            if name in heard and now - max(since, heard[name]) >= DEAF_S
        ]


class Absences:
    """Finds topics and actions, by name, whose others are absent for a while, and which of them were met before."""

    def __init__(self, after_s: float) -> None:
        self._after_s = after_s
        self._since: dict[str, float] = {}
        self._met: set[str] = set()

    def look(self, now: float, there: Mapping[str, bool]) -> None:
        """Note who is there now."""
        before = self._since
        self._since = {name: before.get(name, now) for name, present in there.items() if not present}
        self._met.update(name for name, present in there.items() if present)

    def absent(self, now: float) -> set[str]:
        """Return those who have been absent for a while, as of the last look."""
        return {name for name, since in self._since.items() if now - since >= self._after_s}

    def missed(self, now: float) -> set[str]:
        """Return those of the absent who were there before."""
        return self.absent(now) & self._met


class Returns:
    """Finds participants that are back after they were gone, and that announce none of their readers and writers.

    One that stood still for longer than its lease, as on a computer that slept, is forgotten here, but has itself
    forgotten nobody: it announces itself, and takes the rest for known.
    """

    def __init__(self) -> None:
        self._gone: dict[str, None] = {}
        self._mute_since: dict[str, float] = {}
        self._topics: dict[str, set[str]] = {}
        """The topics that each has announced."""

    def leave(self, participant: str) -> None:
        """Note that a participant is gone."""
        self._mute_since.pop(participant, None)
        self._gone[participant] = None
        if len(self._gone) > _MOST_GONE:
            oldest = next(iter(self._gone))
            del self._gone[oldest]
            self._topics.pop(oldest, None)

    def come(self, participant: str, now: float) -> None:
        """Note that a participant is there."""
        if participant in self._gone:
            del self._gone[participant]
            self._mute_since[participant] = now

    def announce(self, participant: str, topic: str) -> None:
        """Note that a participant has announced a reader or a writer, which may be known before itself."""
        self._gone.pop(participant, None)
        self._mute_since.pop(participant, None)
        topics = self._topics.setdefault(participant, set())
        if len(topics) < _MOST_TOPICS:
            topics.add(topic)

    def mute_s(self, now: float) -> float:
        """Return for how many seconds a participant has been back without a word, 0 if none is."""
        return now - min(list(self._mute_since.values()), default=now)

    def mute_topics(self, now: float) -> set[str]:
        """Return the topics that those announced before who have been back without a word for ``MUTE_S``."""
        mute = [participant for participant, since in list(self._mute_since.items()) if now - since >= MUTE_S]
        return set().union(*(self._topics.get(participant, ()) for participant in mute))
