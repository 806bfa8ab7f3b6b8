"""What must hold of a run, checked on what is left of it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator

from dimos_streams.fleet.protocol import DEFAULT_EXPIRY_S
from dimos_streams.tool_stream.event import ToolEvent
from tests.agent.simulation.robot import Body
from tests.fleet.simulation.operators import Order
from tests.fleet.simulation.simulated_run import Outcome

_EXPECTED = ("did not end when it was asked to",)
_ON_ITS_WAY_S = 2.6
"""Maximum time, in seconds, from a bridge's request for a call until that begins: it is repeated, and delayed."""
_LOOK_UPS = 5
"""Number of times that a hub asks its database, at most, until an order is noted there."""
_LONGEST_S = 60.0
"""Maximum time, in seconds, that a hub waits before it answers an operator."""
_CERTAINLY_NOT = frozenset({"robot-unreachable", "command-refused", "robot-needed", "unknown-skill"})
"""Kinds of problems that say that nothing was begun, and will not be."""
_SHOWN = ("state", "outcome", "text", "last_seq", "skill", "caller")


def broken(run: Outcome) -> list[str]:
    """Return the promises that do not hold, a line for each; none if all is well."""
    problems = [f"not at rest: {what}" for what in run.unsettled]
    for check in (_logged, _once, _in_time, _meant, _answered, _said, _shipped, _views, _stopped, _older):
        problems += check(run)
    return problems


def _logged(run: Outcome) -> Iterator[str]:
    for record in run.logged:
        text = logging.Formatter("%(levelname)s %(name)s: %(message)s").format(record)
        if not any(words in text for words in _EXPECTED):
            yield f"logged: {text[-2000:]}"


def _bodies(run: Outcome, tag: str) -> list[tuple[str, Body]]:
    return [(name, body) for name, bodies in run.bodies.items() for body in bodies if body.tag == tag]


def _once(run: Outcome) -> Iterator[str]:
    """What is ordered is done once, however often it is asked for, and whoever dies meanwhile."""
    tags = Counter(body.tag for bodies in run.bodies.values() for body in bodies)
    for tag, count in tags.items():
        if count > 1:
            yield f"{tag} was done {count} times: {_bodies(run, tag)}, {_order(run, tag)}"
    for name, entered in run.entered.items():
        for command, count in Counter(entered).items():
            if count > 1:
                yield f"{name} has carried {command} out {count} times"


def _in_time(run: Outcome) -> Iterator[str]:
    """Nothing begins long after it was asked for, whatever became of clocks."""
    for order in _calls(run):
        longest_s = DEFAULT_EXPIRY_S + order.body.get("lease_wait_s", 0.0) + _ON_ITS_WAY_S
        for _, body in _bodies(run, order.key):
            if not any(attempt.at <= body.began <= attempt.at + longest_s for attempt in order.attempts):
                yield f"{body} began too late: {order}"


def _meant(run: Outcome) -> Iterator[str]:
    """The robot that is meant does it, and no other one."""
    for order in _calls(run):
        for name, body in _bodies(run, order.key):
            if name != order.robot:
                yield f"{name} did {body}: {order}"


def _answered(run: Outcome) -> Iterator[str]:
    """Every request is answered in time, with the call that there is, as it is."""
    for order in run.orders:
        for attempt in order.attempts:
            if attempt.over - attempt.at > _LONGEST_S:
                yield f"answered late: {order}"
    for order in _calls(run):
        ids = {answer["call_id"] for answer in order.answers}
        known = {view.call_id: view for view in run.calls[order.robot]}
        done = {body.call_id for _, body in _bodies(run, order.key)}
        if len(ids) > 1 or not ids <= known.keys() or (ids and done and ids != done):
            yield f"calls {ids} of those that {order.robot} has, which did {done}: {order}"
        for answer in order.answers:
            view = known.get(answer["call_id"])
            if view is not None and answer.get("outcome") and answer["outcome"] != view.outcome:
                yield f"{order.robot} has {view}: {order}"


def _said(run: Outcome) -> Iterator[str]:
    """What has completed was done, and what was said not to be done was not."""
    for order in _calls(run):
        bodies = _bodies(run, order.key)
        if any(answer.get("outcome") == "completed" for answer in order.answers) and not bodies:
            yield f"said to be done, and was not: {order}"
        kinds = {attempt.kind for attempt in order.attempts}
        if bodies and kinds <= _CERTAINLY_NOT:
            yield f"said not to be done, and was: {bodies}, {order}"


def _shipped(run: Outcome) -> Iterator[str]:
    """The hub has each event of a robot's journal once, in order."""
    for name, entries in run.journals.items():
        ours, theirs = [_facts(each.event) for each in entries], [_facts(each.event) for each in run.shipped[name]]
        if ours != theirs:
            first = next((pair for pair in zip(ours, theirs, strict=False) if pair[0] != pair[1]), "the end")
            yield f"{name} has {len(ours)} events, the hub {len(theirs)} of it; they differ at {first}"


def _facts(event: ToolEvent) -> tuple[str, int, str, str]:
    return event.call_id, event.seq, event.type, event.text


def _views(run: Outcome) -> Iterator[str]:
    """What the hub shows of a call is what its robot shows."""
    for name, views in run.calls.items():
        for view in views:
            mine = {field: getattr(view, field) for field in _SHOWN}
            theirs = [{field: shown.get(field) for field in _SHOWN} for shown in run.shown[view.call_id]]
            if theirs != [mine]:
                yield f"{name} shows {mine}, the hub {theirs}"


def _stopped(run: Outcome) -> Iterator[str]:
    """From a confirmed stop of a robot to the next order to release it nothing begins."""
    for stop in (order for order in run.orders if order.what == "stop"):
        for attempt in stop.attempts:
            if attempt.answer is None or attempt.answer.status != 200 or not _confirms(attempt.answer.json):
                continue
            released = _released(run, stop.robot, attempt.at)
            for body in run.bodies[stop.robot]:
                if attempt.over <= body.began < released:
                    yield f"{body} began despite {stop}"


def _older(run: Outcome) -> Iterator[str]:
    """What was asked for before a confirmed order to stop or to end all, and not since, does not begin after it."""
    given_s = _LOOK_UPS * run.plan.line.database_s + 0.01
    for stop in (order for order in run.orders if order.what in ("stop", "cancel all")):
        for attempt in (each for each in stop.attempts if each.answer and _confirms(each.answer.json)):
            for order in _calls(run):
                if order.robot == stop.robot and all(each.at < attempt.at - given_s for each in order.attempts):
                    late = [body for _, body in _bodies(run, order.key) if body.began > attempt.over]
                    yield from (f"{body} began after {stop}: {order}" for body in late)


def _confirms(answer: object) -> bool:
    return isinstance(answer, dict) and answer.get("confirmed") is True


def _released(run: Outcome, robot: str, since: float) -> float:
    """The time from which a robot may have been released since; what nobody has answered may come a while later."""
    found = [
        attempt.at
        for order in run.orders
        for attempt in order.attempts
        if (order.what, order.robot) == ("release", robot)
        and attempt.over >= since - (0.0 if attempt.is_final else _LONGEST_S)
    ]
    return min(found, default=float("inf"))


def _calls(run: Outcome) -> list[Order]:
    return [order for order in run.orders if order.what == "call"]


def _order(run: Outcome, tag: str) -> Order | None:
    return next((order for order in run.orders if order.key == tag), None)
