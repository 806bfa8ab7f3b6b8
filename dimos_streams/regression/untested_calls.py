"""The calls of a log that would test nothing any more if the log were written anew as they are in a replay."""

from __future__ import annotations

from collections.abc import Iterator

from dimos_streams.regression.module_lives import ENDS_HERE
from dimos_streams.tool_stream.event import Outcome, ToolEvent


class UntestedCalls:
    """Takes what modules said of calls in the log, and what they say in the replay."""

    def __init__(self) -> None:
        self.ended: dict[str, str] = {}
        """The texts with which calls have ended in the log, as far as it was read."""
        self._carried_out: set[str] = set()
        """The calls that were begun in the log, and not rejected."""
        self._cut_off: list[str] = []
        """Calls that have ended in the log by themselves, and go on until their module stops in it, or it ends."""
        self._rejected: dict[str, str] = {}
        """The calls that are rejected in the replay, by their ids, as people know them."""

    def recorded(self, said: ToolEvent) -> None:
        """Take an event of the log."""
        if said.type == "close":
            self.ended[said.call_id] = said.text
        if said.type != "open" and said.outcome != Outcome.REJECTED:
            self._carried_out.add(said.call_id)

    def replayed(self, said: ToolEvent) -> None:
        """Take an event of the replay."""
        name = f"{said.skill} [{said.call_id}]"
        if said.type == "close" and said.text == ENDS_HERE and self.ended.get(said.call_id, ENDS_HERE) != ENDS_HERE:
            self._cut_off.append(name)
        elif said.outcome == Outcome.REJECTED:
            self._rejected[said.call_id] = f"{name} ({said.text})"

    def why_not_rewritten(self) -> Iterator[str]:
        """Yield the reasons why the log is not to be written anew."""
        if self._cut_off:
            yield (
                f"it stays as it is: {', '.join(self._cut_off)} had ended in it, and now would be cut off where it"
                " ends, or its module stops in it, so that nothing would test how it ends; record it anew"
            )
        if rejected := [name for call_id, name in self._rejected.items() if call_id in self._carried_out]:
            yield (
                f"it stays as it is: {', '.join(rejected)} was carried out in it, and now would be rejected, so that"
                " nothing would test what it does; record it anew"
            )
