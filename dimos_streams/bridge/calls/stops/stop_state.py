"""The robots that an operator has stopped, kept in a file so that a bridge that starts again knows them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import Field

from dimos_streams import clock
from dimos_streams.common.invalid import problem_of
from dimos_streams.common.names import is_in, namespace_of
from dimos_streams.common.process.disk import load_state, save_state
from dimos_streams.common.readable.reasons import joined_reasons
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.operator.messages.stop import Stop
from dimos_streams.operator.robot_orders import NO_ORDER
from dimos_streams.tool_stream.protocol.bounds import MAX_REASON

SUFFIX = ".stops.json"
"""The suffix of the file, which is beside the bridge's journal and otherwise has the journal's name."""

_MAX_ORDERS = 50
"""Maximum number of robots whose newest order is told apart: a heartbeat has to carry all."""
_MAX_NAMES = 2500
"""Maximum length of their names together, in characters, for the same reason."""
_logger = logging.getLogger(__name__)


class _StopRecord(FrozenModel):
    """The file's content."""

    stops: tuple[Stop, ...] = ()
    released: tuple[str, ...] = ()
    orders: dict[str, int] = Field(default_factory=dict)


@dataclass(frozen=True)
class StopState:
    """The orders that are in force. A robot is a namespace, with all that is nested in it; ``""`` is every robot."""

    stops: dict[str, Stop] = field(default_factory=dict)
    """The orders by robot."""
    released: frozenset[str] = frozenset()
    """Robots that were released while every other one stays stopped."""
    orders: Mapping[str, int] = field(default_factory=dict, compare=False)
    """The number of each robot's newest order, a stop or the end of one: of two, the later one has the higher number,
    however the clock was set."""

    def stop(self, stop: Stop) -> StopState:
        """The state with one more order. It keeps the reasons of those that it takes the place of: whoever releases
        it reads why each was given."""
        before = ""
        for name, other in self.stops.items():
            if is_in(name, stop.robot):
                before = joined_reasons(other.reason, before, MAX_REASON)
        kept = stop.model_copy(update={"reason": joined_reasons(stop.reason, before, MAX_REASON)})
        stops = {**self._without(stop.robot), stop.robot: kept}
        return StopState(stops, self._still_released(stop.robot), self._ordered(stop.robot))

    def release(self, robot: str) -> StopState:
        """The state after a robot is released."""
        left = StopState(self._without(robot), self._still_released(robot))
        left = replace(left, released=left.released | {robot}) if left.covering(robot) else left
        return self if left == self else replace(left, orders=self._ordered(robot))

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

    def _ordered(self, robot: str) -> dict[str, int]:
        """The numbers after one more order. Where robots are many, the oldest orders count as ones to all."""
        orders = {name: number for name, number in self.orders.items() if not is_in(name, robot)}
        orders[robot] = max(clock.utime(), 1 + max(self.orders.values(), default=NO_ORDER))
        while len(orders) > _MAX_ORDERS or sum(map(len, orders)) > _MAX_NAMES:
            oldest = min(orders.keys() - {""}, key=orders.__getitem__)
            orders[""] = max(orders.pop(oldest), orders.get("", NO_ORDER))
        return orders


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
    return StopState({stop.robot: stop for stop in record.stops}, frozenset(record.released), record.orders)


def save(path: Path, state: StopState) -> str:
    """Write the orders atomically; return why that was not possible, empty if it was. Waits for the disk."""
    stops, released = tuple(state.stops.values()), tuple(sorted(state.released))
    record = _StopRecord(stops=stops, released=released, orders=dict(state.orders))
    try:
        save_state(path, record.model_dump_json())
    except OSError as error:
        return f"{path} can't be written: {error.strerror or error}"
    return ""


def _all_stopped(why: str, known: Iterable[Stop]) -> StopState:
    reason = f"{why}, so it is not known which robots were stopped"
    _logger.error("every robot is stopped: %s", reason)
    everything = Stop(robot="", utime=clock.utime(), reason=reason[:MAX_REASON])
    stops = {"": everything, **{stop.robot: stop for stop in known}}
    return StopState(stops, orders={"": everything.utime})
