"""What must hold of a run, checked on what is left of it."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterator

from dimos_streams import clock
from dimos_streams.operator.messages.agent import AgentEvent
from dimos_streams.operator.messages.hold import HoldView
from dimos_streams.operator.messages.stop import StopReport
from dimos_streams.tool_stream.event import Outcome as Ending
from tests.agent.simulation.operators import Order
from tests.agent.simulation.robot import MOTIONS, RESOURCES, UNDOES, Body
from tests.agent.simulation.simulated_run import Outcome

_ON_ITS_WAY_S = 2.6
"""How long, in seconds, a call that was asked for may still begin: its request is repeated for 2 s, and delayed."""
_EXPECTED = ("did not end when it was asked to", "calls of others may still run", "may still move the robot")
"""Errors that are logged where a link is cut or a part is down."""
_ENDS_OF_PAUSES = frozenset({"resume", "step", "undo", "abort"})


def broken(run: Outcome) -> list[str]:
    """Return the promises that do not hold, a line for each; none if all is well."""
    problems = [*run.moments, *(f"not at rest: {what}" for what in run.unsettled)]
    for check in (
        _logged,
        _calls,
        _readers,
        _views,
        _once,
        _ordered,
        _undone,
        _decided,
        _held,
        _missions,
        _stopped,
        _paused,
        _aborted,
    ):
        problems += check(run)
    return problems


def _logged(run: Outcome) -> Iterator[str]:
    for record in run.logged:
        is_known = record.levelno < logging.ERROR and record.name.startswith("dimos_streams") and not record.exc_info
        text = logging.Formatter("%(levelname)s %(name)s: %(message)s").format(record)
        if not is_known and not any(words in text for words in _EXPECTED):
            yield f"logged: {text}"


def _calls(run: Outcome) -> Iterator[str]:
    """Numbers rise from 1, the first is open, the one close is last, and what is missing is a gap."""
    for call_id, events in run.by_call.items():
        types = [event.type for event in events]
        if types[0] != "open" or types[-1] != "close" or types.count("close") != 1:
            yield f"call {call_id} of {events[0].skill} has {types}"
        expected = 1
        for event in events:
            first = event.data["from_seq"] if event.type == "gap" else event.seq
            if first != expected:
                yield f"call {call_id} has seq {first} where {expected} should be: {types}"
            expected = event.seq + 1
    for order in run.orders:
        if order.what != "cancel" and order.call_id and order.call_id not in run.by_call:
            yield f"a call that was accepted has no events: {order}"


def _readers(run: Outcome) -> Iterator[str]:
    offsets = [entry.offset for entry in run.journal]
    if offsets != sorted(set(offsets)):
        yield f"offsets do not rise: {offsets}"
    if [(entry.offset, entry.event) for entry in run.read] != [(entry.offset, entry.event) for entry in run.journal]:
        yield f"a reader got offsets {[entry.offset for entry in run.read]}, the journal has {offsets}"


def _views(run: Outcome) -> Iterator[str]:
    """What the bridge and the agent show is what has happened."""
    for view in run.calls:
        last = run.by_call[view.call_id][-1]
        state = "closed" if last.type == "close" else "open"
        if (view.last_seq, view.state, view.outcome) != (last.seq, state, last.outcome):
            yield f"the bridge shows {view}, the journal has {last}"
    shown = run.snapshot
    if not run.unsettled and (shown.missions or shown.calls or shown.approvals or shown.waiting_calls):
        yield f"the agent shows {shown.missions}, {shown.calls}, {shown.approvals}, {shown.waiting_calls}"


def _once(run: Outcome) -> Iterator[str]:
    """A call runs once, whoever dies meanwhile."""
    for call_id, count in Counter(body.call_id for body in run.bodies).items():
        if count > 1 and any(
            body.skill in MOTIONS | RESOURCES.keys() for body in run.bodies if body.call_id == call_id
        ):
            yield f"call {call_id} ran {count} times: {[body for body in run.bodies if body.call_id == call_id]}"
    for body in run.bodies:
        if body.call_id not in run.by_call:
            yield f"nobody has heard of {body}"


def _ordered(run: Outcome) -> Iterator[str]:
    """An order is carried out once, whoever dies meanwhile, and a step lets at most the call go that was seen."""
    orders = Counter(event.data["id"] for event in run.record if event.kind == "order")
    yield from (f"order {call_id} was carried out {count} times" for call_id, count in orders.items() if count > 1)
    order = ""
    for event in run.record:
        if event.kind == "order":
            order = event.data["id"]
        elif event.kind == "step" and event.data["phase"] == "go":
            seen = run.by_call[order][0].data["arguments"].get("waiting", "") if order else "no order"
            if seen not in ("", event.data["waiting"]):
                yield f"order {order} was for {seen}, and let {event.data} go"
            order = ""


def _undone(run: Outcome) -> Iterator[str]:
    """Nothing is taken back twice, before it has ended, or without having run."""
    undos: dict[str, list[Body]] = defaultdict(list)
    for body in run.bodies:
        if body.skill in UNDOES:
            undos[body.tag].append(body)
    for tag, found in undos.items():
        if len(found) > 1:
            yield f"taken back more than once: {found}"
        runs = [body for body in run.bodies if body.tag == tag and body.skill == UNDOES[found[0].skill]]
        if not runs and not _may_have_run(run, tag):
            yield f"taken back, and has not run: {found}"
        if any(body.ended is None or body.ended > found[0].began for body in runs):
            yield f"taken back before it had ended: {runs}, {found}"


def _may_have_run(run: Outcome, tag: str) -> bool:
    """Return whether nobody knows whether a call has run."""
    calls = [events for events in run.by_call.values() if events[0].data.get("arguments", {}).get("tag") == tag]
    return any(events[-1].outcome is Ending.LOST for events in calls)


def _decided(run: Outcome) -> Iterator[str]:
    for order in run.orders:
        if order.what != "decide" or not order.done or not isinstance(order.result, dict):
            continue
        state, given = order.result["state"], order.arguments.get("arguments")
        for body in run.bodies:
            if body.tag != order.tag or body.skill not in ("grab", "jump"):
                continue
            if state in ("rejected", "deleted"):
                yield f"{body} was rejected: {order}"
            elif given and body.seconds != given["seconds"]:
                yield f"{body} was approved otherwise: {order}"


def _held(run: Outcome) -> Iterator[str]:
    """A resource has one holder at a time, and a process runs one of its calls."""
    holders: dict[str, str] = {}
    for entry in run.journal:
        if entry.event.type == "open":
            for resource in entry.event.data.get("resources", ()):
                if resource in holders:
                    yield f"{entry.event.call_id} opens with {resource}, which {holders[resource]} holds"
                holders[resource] = entry.event.call_id
        elif entry.event.type == "close":
            holders = {resource: holder for resource, holder in holders.items() if holder != entry.event.call_id}
    for index, body in enumerate(run.bodies):
        for other in run.bodies[:index]:
            shared = RESOURCES.get(body.skill, "") == RESOURCES.get(other.skill) and body.life == other.life
            at_once = shared and other.began <= body.began < (other.ended or float("inf"))
            if at_once and run.by_call[other.call_id][-1].outcome is not Ending.LOST:
                yield f"{body} and {other} ran at once"


def _missions(run: Outcome) -> Iterator[str]:
    """A mission begins once and ends once, and hears each event once, in order, and all if it was left to its end."""
    begun = Counter(event.data["id"] for event in run.record if event.kind == "mission_start")
    ended = Counter(mission for event in run.record if event.kind == "done" for mission in event.missions)
    if begun != ended or set(begun.values()) - {1}:
        yield f"missions begun: {begun}, ended: {ended}"
    reasons = {
        mission: event.data["reason"] for event in run.record if event.kind == "done" for mission in event.missions
    }
    heard = _heard(run.record)
    for (call_id, sub), seqs in heard.items():
        if seqs != sorted(set(seqs)):
            yield f"of call {call_id} {sub or 'the agent'} heard {seqs}"
    for opened in (event for event in run.record if event.kind == "call_open"):
        events = run.by_call[opened.data["call_id"]]
        due = [event.seq for event in events if event.type in ("update", "close")]
        is_whole = all(event.type != "gap" for event in events)
        missing = set(due).difference(
            *(seqs for (call_id, _), seqs in heard.items() if call_id == opened.data["call_id"])
        )
        if is_whole and missing and all(reasons.get(mission) == "completed" for mission in opened.missions):
            yield f"of call {opened.data['call_id']} the agent did not hear {missing}"


def _heard(record: list[AgentEvent]) -> dict[tuple[str, str], list[int]]:
    """Return the events of each call that each loop has heard: the agent's, and those of its sub-missions.

    Where a call was given up the agent has closed it for itself, in no module's name. It runs on for an agent that is
    started then, which may have to give it up, too."""
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for event in record:
        if event.kind in ("update", "result") and (told := event.data.get("event")) and told.get("call_id"):
            seqs = found[told["call_id"], event.data.get("sub", "")]
            if told["module"] or told["seq"] not in seqs:
                seqs.append(told["seq"])
    return found


def _stopped(run: Outcome) -> Iterator[str]:
    """From a confirmed stop of the robot to its release nothing moves, and nothing begins."""
    for stop in run.orders:
        if stop.what != "stop robot" or not isinstance(stop.result, StopReport) or not stop.result.confirmed:
            continue
        released = min(each.at for each in run.orders if each.what == "release robot" and each.over >= stop.at)
        yield from (f"moved at {at:.3f} despite {stop}" for at in _moved(run, stop.over, released))
        for body in run.bodies:
            if body.skill in MOTIONS | RESOURCES.keys() and stop.over <= body.began < released:
                yield f"{body} began despite {stop}"


def _paused(run: Outcome) -> Iterator[str]:
    """From a confirmed pause to the next order that may end it nothing moves, and no call of the agent begins."""
    for pause in run.orders:
        if pause.what != "pause" or not pause.done or not _is_held(pause):
            continue
        ends = [
            each for each in run.orders if (each.what in _ENDS_OF_PAUSES or each.is_stop) and each.over >= pause.at
        ]
        until = min((each.at for each in ends), default=float("inf"))
        yield from (f"moved at {at:.3f} despite {pause}" for at in _moved(run, pause.over, until))
        for body in run.bodies:
            if body.of_agent and pause.over + _ON_ITS_WAY_S <= body.began < until:
                yield f"{body} began despite {pause}"


def _is_held(pause: Order) -> bool:
    return (
        isinstance(pause.result, dict)
        and HoldView.model_validate(
            {name: pause.result[name] for name in HoldView.model_fields if name in pause.result}
        ).confirmed
    )


def _moved(run: Outcome, begin: float, end: float) -> list[float]:
    return [at for at, speed in run.velocities if begin <= at < end and speed]


def _aborted(run: Outcome) -> Iterator[str]:
    """After an abort or a stop that names nothing as unfinished, no motion goes on that ran before it."""
    for order in run.orders:
        if not (order.is_stop or order.what == "abort") or not order.done or "may still run" in order.text:
            continue
        began = (run.by_call[order.call_id][0].utime - clock.VIRTUAL_EPOCH_US) / 1e6
        for body in run.bodies:
            is_meant = body.skill in MOTIONS and body.began < began and (order.is_stop or body.of_agent)
            is_cut_off = run.by_call[body.call_id][-1].outcome is Ending.LOST  # it stops by itself
            if is_meant and not is_cut_off and (body.ended is None or body.ended > order.over + 0.02):
                yield f"{body} went on after {order}"
