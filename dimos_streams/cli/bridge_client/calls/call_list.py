"""The list of calls that ``calls`` shows, its order and its columns, and the choice of one call from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dimos_streams import clock
from dimos_streams.cli.system.abbreviated_ids import find_abbreviated
from dimos_streams.cli.terminal.output import duration
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.errors import UserError
from dimos_streams.tool_stream.family import ancestors_of

if TYPE_CHECKING:
    from dimos_streams.tool_stream.gateway import CallView

CALL_COLUMNS = ("CALL", "SKILL", "STATE", "BEGAN", "TOOK", "CALLER", "LAST WORD")
_LAST_WORD = 80
"""Maximum length of what is shown of a call's newest text, in characters."""


def call_among(calls: Iterable[CallView], start: str, robot: str | None = None, *, run: str = "") -> CallView:
    """Return the call whose id begins so, of one ``robot`` of a fleet if that is given; an open one rather than a
    closed one. ``run`` is the one that has to be named for them. Raises ``UserError``, also for an empty text, as
    that of a script's variable that was not set: every id begins so."""
    lists = f"`dimos-streams calls{f' --run {run}' if run else ''}` lists them"
    if not start:
        raise UserError(f"the id of a call is empty; {lists}")
    views = [view for view in calls if robot in (None, view.robot)]
    candidates = find_abbreviated(start, views, lambda view: view.call_id, prefer=lambda view: view.state != "closed")
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        whose = "" if robot is None else f" of robot {robot!r}"
        raise UserError(f"no call{whose} has an id that begins with {start!r}; {lists}")
    names = ", ".join(f"{view.call_id} of {view.robot}" if view.robot else view.call_id for view in candidates)
    remedy = "; --robot says whose" if len({view.robot for view in candidates}) > 1 else ""
    raise UserError(f"several calls have ids that begin with {start!r}: {names}{remedy}")


def in_families(views: Iterable[CallView]) -> list[CallView]:
    """Return the calls, each followed by those that belong to it; otherwise in their order."""
    found = list(views)
    places = {view.call_id: place for place, view in enumerate(found)}

    def place(view: CallView) -> list[int]:
        line = (*reversed(ancestors_of(view.call_id)), view.call_id)
        return [places[call_id] for call_id in line if call_id in places]

    return sorted(found, key=place)


def call_table(views: Iterable[CallView]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return calls as a table, its headers and its rows. At a hub each row begins with the call's robot."""
    found = list(views)
    if not any(view.robot for view in found):
        return CALL_COLUMNS, [_call_cells(view) for view in found]
    return ("ROBOT", *CALL_COLUMNS), [(view.robot or "", *_call_cells(view)) for view in found]


def _call_cells(view: CallView) -> tuple[str, ...]:
    state = str(view.outcome) if view.state == "closed" and view.outcome else view.state
    skill = "  " * len(ancestors_of(view.call_id)) + view.skill
    word = shortened(" ".join(view.text.split()), _LAST_WORD)
    return view.call_id, skill, state, *_times(view), view.caller, word


def _times(view: CallView) -> tuple[str, str]:
    """Return how long ago a call began, and how long it took, as far as that is known; clocks may differ."""
    if not view.requested_utime:
        return "", ""
    age_s = max(0, clock.utime() - view.requested_utime) / 1e6
    took_s = None if view.closed_utime is None else max(0, view.closed_utime - view.requested_utime) / 1e6
    return f"{duration(age_s, digits=0)} ago", "" if took_s is None else duration(took_s)
