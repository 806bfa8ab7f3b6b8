"""The robots that an operator has stopped, kept in a file so that a bridge that starts again knows them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from dimos_streams import clock
from dimos_streams.common.invalid import problem_of
from dimos_streams.common.names import is_in, namespace_of
from dimos_streams.common.process.disk import load_state, save_state
from dimos_streams.common.readable.reasons import joined_reasons
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.operator.messages.stop import Stop
from dimos_streams.tool_stream.protocol.bounds import MAX_REASON

SUFFIX = ".stops.json"
"""The suffix of the file, which is beside the bridge's journal and otherwise has the journal's name."""

_logger = logging.getLogger(__name__)


class _StopRecord(FrozenModel):
    """The file's content."""

    stops: tuple[Stop, ...] = ()
    released: tuple[str, ...] = ()


@dataclass(frozen=True)
class StopState:
    """The orders that are in force. A robot is a namespace, with all that is nested in it; ``""`` is every robot."""

    stops: dict[str, Stop] = field(default_factory=dict)
    """The orders by robot."""
    released: frozenset[str] = frozenset()
    """Robots that were released while every other one stays stopped."""

    def stop(self, stop: Stop) -> StopState:
        """The state with one more order. It keeps the reasons of those that it takes the place of: whoever releases
        it reads why each was given."""
        before = ""
        for name, other in self.stops.items():
            if is_in(name, stop.robot):
                before = joined_reasons(other.reason, before, MAX_REASON)
        kept = stop.model_copy(update={"reason": joined_reasons(stop.reason, before, MAX_REASON)})
        return StopState({**self._without(stop.robot), stop.robot: kept}, self._still_released(stop.robot))

    def release(self, robot: str) -> StopState:
        """The state after a robot is released."""
        kept = StopState(self._without(robot), self._still_released(robot))
        return replace(kept, released=kept.released | {robot}) if kept.covering(robot) else kept

    def undone_by(self, robot: str) -> list[Stop]:
        """The orders that the release of a robot undoes, for it or for a part of it."""
        return [stop for name, stop in self.stops.items() if is_in(name, robot) or is_in(robot, name)]

    def covering(self, namespace: str) -> Stop | None:
        """The order that keeps a namespace still, None if none does; the innermost order or release counts."""
        stopped = max((robot for robot in self.stops if is_in(namespace, robot)), key=len, default=None)
        released = max((robot for robot in self.released if is_in(namespace, robot)), key=len, default="")
        if stopped is None or len(released) > len(stopped):
            return None
        return self.stops[stopped]

    def _without(self, robot: str) -> dict[str, Stop]:
        """The orders for other robots than this one and those in it."""
        return {name: stop for name, stop in self.stops.items() if not is_in(name, robot)}

    def _still_released(self, robot: str) -> frozenset[str]:
        return frozenset(name for name in self.released if not is_in(name, robot))


def is_of(module: str, robot: str) -> bool:
    """Return whether a module is one of a robot's."""
    return is_in(namespace_of(module), robot)


def load(path: Path) -> StopState:
    """Read what a bridge of the run has written. A file that is unreadable or out of date stops every robot: it
    exists for a reason."""
    try:
        saved = load_state(path)
        record = _StopRecord() if saved.text is None else _StopRecord.model_validate_json(saved.text)
    except (OSError, ValueError) as error:
        return _all_stopped(f"{path} can't be read ({problem_of(error, 'it')})", ())
    if saved.outdated:
        return _all_stopped(f"the last order could not be written to {path}", record.stops)
    return StopState({stop.robot: stop for stop in record.stops}, frozenset(record.released))


def save(path: Path, state: StopState) -> str:
    """Write the orders atomically; return why that was not possible, empty if it was. Waits for the disk."""
    record = _StopRecord(stops=tuple(state.stops.values()), released=tuple(sorted(state.released)))
    try:
        save_state(path, record.model_dump_json())
    except OSError as error:
        return f"{path} can't be written: {error.strerror or error}"
    return ""


def _all_stopped(why: str, known: Iterable[Stop]) -> StopState:
    reason = f"{why}, so it is not known which robots were stopped"
    _logger.error("every robot is stopped: %s", reason)
    everything = Stop(robot="", utime=clock.utime(), reason=reason[:MAX_REASON])
    return StopState({"": everything, **{stop.robot: stop for stop in known}})
