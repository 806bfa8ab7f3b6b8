"""Tells a topic that can't be heard any more from one that says nothing, as far as DDS lets anybody tell."""

from __future__ import annotations

from collections.abc import Collection, Mapping

DEAF_S = 30.0
"""Seconds of silence after which a topic whose writer is there counts as one that can't be heard. A robot behind a
cut link is gone by then: its lease is 10 s in Cyclone DDS, and 20 s in Fast DDS."""


class Deafness:
    """Follows streams whose writers are there.

    DDS passes over messages whose number is below one that it has had, and anybody who reaches its ports can send a
    number far ahead in a writer's name. All other signs of that writer stay as they are: it is matched, it is alive,
    and nothing counts as lost.
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
