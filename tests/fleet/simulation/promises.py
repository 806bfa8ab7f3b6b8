"""What must hold of a run, checked on what is left of it."""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Iterator

from dimos_streams.tool_stream.event import ToolEvent
from tests.agent.simulation.robot import Body
from tests.fleet.simulation.operators import Order
from tests.fleet.simulation.robot import Run
from tests.fleet.simulation.simulated_run import Outcome

_EXPECTED = ("did not end when it was asked to",)
_ON_ITS_WAY_S = 2.6
"""Maximum time, in seconds, from a bridge's request for a call until that begins: it is repeated, and delayed."""
_STOPS = ("/robots/stop", "/calls/cancel")
_STOPS_WAIT_S = 20.0
"""Maximum time, in seconds, from when an operator stops a robot until the order is there, or never comes."""
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
    problems += run.moments
    for check in _CHECKS:
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
    for name, bodies in run.bodies.items():
        tags = Counter((body.tag, _run_at(run, name, body.began).machine) for body in bodies)
        for (tag, _), count in tags.items():
            if count > 1:
                yield f"{tag} was done {count} times: {_bodies(run, tag)}, {_order(run, tag)}"
    for name, entered in run.entered.items():
        # A new run does anew what is no call, as what the one before it did has ended with it.
        commands = Counter((each.run, each.path, each.key) for each in entered if not each.begins_call)
        for command, count in commands.items():
            if count > 1:
                yield f"{name} has carried {command} out {count} times"


def _in_time(run: Outcome) -> Iterator[str]:
    """Nothing begins long after it was asked for, whatever became of clocks: but for what a hub that was down can't
    know, that its clock was set back meanwhile."""
    for order in _calls(run):
        for _, body in _bodies(run, order.key):
            if not order.is_valid_at(body.began, _ON_ITS_WAY_S + run.set_back_s):
                yield f"{body} began too late: {order}"
    for name, entered in run.entered.items():
        releases = [order for order in run.orders if (order.what, order.robot) == ("release", name)]
        for entry in entered:
            orders = [order for order in _calls(run) if order.key == entry.key]
            orders += releases if entry.path == "/robots/release" else []
            if orders and not any(order.is_valid_at(entry.at, run.set_back_s) for order in orders):
                yield f"{name} took {entry} too late: {', '.join(map(str, orders))}"


def _successors(run: Outcome) -> Iterator[str]:
    """What a robot was to do that is removed is not what the next one of its name does."""
    for name, runs in run.runs.items():
        for before, after in itertools.pairwise(runs):
            if before.machine == after.machine or run.copies:
                continue
            for entry in run.entered[name]:
                orders = [order for order in _calls(run) if order.key == entry.key]
                if orders and entry.at >= after.began and all(each.at < before.ended for each in orders[0].attempts):
                    yield f"the successor of {name} took {entry}: {orders[0]}"


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
        ids = {answer.get("call_id") for answer in order.answers}
        runs = run.runs[order.robot]
        known = {view.call_id: view for each in runs for view in each.calls}
        done = {body.call_id for _, body in _bodies(run, order.key)}
        if (
            len(ids) > runs[-1].machine
            or not ids <= known.keys()
            or (ids and done and ids != done and runs[-1].machine == 1)
        ):
            yield f"calls {ids} of those that {order.robot} has, which did {done}: {order}"
        for answer in order.answers:
            view = known.get(str(answer.get("call_id")))
            if view is not None and view.outcome and answer.get("outcome") and answer["outcome"] != view.outcome:
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
    """The hub has each event of each journal once, in order, and of a robot that was removed as many as it had
    shipped."""
    for name, runs in run.runs.items():
        shipped = [_facts(event) for _, event in run.shipped if event.robot == name]
        for each, events in zip(runs, run.journals[name], strict=True):
            ours, ids = [_facts(event) for event in events], {event.call_id for event in events}
            theirs = [facts for facts in shipped if facts[0] in ids]
            if ours != theirs and (each.machine == runs[-1].machine or ours[: len(theirs)] != theirs):
                first = next((pair for pair in zip(ours, theirs, strict=False) if pair[0] != pair[1]), "the end")
                yield f"{name} has {len(ours)} events, the hub {len(theirs)} of it; they differ at {first}: {each}"


def _read(run: Outcome) -> Iterator[str]:
    """Who reads the hub's sequence gets each event once, in order, whatever breaks."""
    stored = [(number, *_facts(event)) for number, event in run.shipped]
    read = [(number, *(event[field] for field in ("call_id", "seq", "type", "text"))) for number, event in run.read]
    if read != stored or [number for number, *_ in stored] != list(range(1, len(stored) + 1)):
        first = next((pair for pair in zip(stored, read, strict=False) if pair[0] != pair[1]), "the end")
        yield f"the hub has {len(stored)} events, a reader {len(read)}; they differ at {first}"


def _facts(event: ToolEvent) -> tuple[str, int, str, str]:
    return event.call_id, event.seq, event.type, event.text


def _views(run: Outcome) -> Iterator[str]:
    """What the hub shows of a call is what its robot shows."""
    for name, runs in run.runs.items():
        for each in runs[:-1]:
            for view in (call for call in each.calls if call.last_seq):
                states = [shown["state"] for shown in run.shown[view.call_id]]
                if states != ["closed"] and (states or each.machine == runs[-1].machine):
                    yield f"{name}: of {view} of {each}, which has ended, the hub shows {states}"
        for view in runs[-1].calls:
            mine = {field: getattr(view, field) for field in _SHOWN}
            theirs = [{field: shown.get(field) for field in _SHOWN} for shown in run.shown[view.call_id]]
            if theirs != [mine]:
                yield f"{name} shows {mine}, the hub {theirs}"


def _stopped(run: Outcome) -> Iterator[str]:
    """From a confirmed stop of a robot to the next order to release it, or its next run, nothing begins."""
    for stop in (order for order in run.orders if order.what == "stop"):
        for attempt in stop.attempts:
            if attempt.answer is None or attempt.answer.status != 200 or not _confirms(attempt.answer.json):
                continue
            begun = [each.began for each in run.runs[stop.robot] if each.began > attempt.at]
            released = min(_released(run, stop.robot, attempt.at), *begun, float("inf"))
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


def _overtaken(run: Outcome) -> Iterator[str]:
    """What was asked for before an order to stop or to end all, and not since, begins nothing behind it."""
    given_s = _LOOK_UPS * run.plan.line.database_s + 0.01
    for name, entered in run.entered.items():
        asked = [each.at for order in run.orders if _stops(order, name) for each in order.attempts]
        for number, stop in enumerate(entered):
            given = min((at for at in asked if stop.at - _STOPS_WAIT_S <= at <= stop.at), default=0.0) - given_s
            keys = {each.key for each in entered[number:] if each.begins_call} if stop.path in _STOPS else set()
            for order in (each for each in _calls(run) if each.key in keys):
                late = [body for _, body in _bodies(run, order.key) if body.began > stop.at]
                if late and all(each.at < given for each in order.attempts):
                    yield f"{late} began behind {stop}: {order}"


def _stops(order: Order, robot: str) -> bool:
    return order.robot == robot and order.what in ("stop", "cancel all")


def _confirms(answer: object) -> bool:
    return isinstance(answer, dict) and answer.get("confirmed") is True


def _released(run: Outcome, robot: str, since: float) -> float:
    """The time from which a robot may have been released since; what nobody has answered may come a while later."""
    found = [
        attempt.at
        for order in run.orders
        for attempt in order.attempts
        if (order.what, order.robot) == ("release", robot)
        and order.seen_at >= since
        and attempt.over >= since - (0.0 if attempt.is_final else _LONGEST_S)
    ]
    return min(found, default=float("inf"))


def _run_at(run: Outcome, robot: str, at: float) -> Run:
    return [each for each in run.runs[robot] if each.began <= at][-1]


def _calls(run: Outcome) -> list[Order]:
    return [order for order in run.orders if order.what == "call"]


def _order(run: Outcome, tag: str) -> Order | None:
    return next((order for order in run.orders if order.key == tag), None)


_CHECKS = (
    _logged,
    _once,
    _in_time,
    _successors,
    _meant,
    _answered,
    _said,
    _shipped,
    _read,
    _views,
    _stopped,
    _older,
    _overtaken,
)
