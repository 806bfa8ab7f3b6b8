"""The detection of topics whose messages DDS discards, which otherwise look like silent ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping

DEAF_S = 30.0
"""Seconds of silence after which a topic whose writer is there counts as one that can't be heard. A robot behind a
cut link is gone by then: its lease is 10 s in Cyclone DDS, and 20 s in Fast DDS."""


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
