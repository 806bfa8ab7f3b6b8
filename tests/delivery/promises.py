"""The promises of delivery, checked on what is left of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from dimos_streams.tool_stream.event import Outcome as Ending
from dimos_streams.tool_stream.event import ToolEvent
from tests.delivery.readers import AgentLife
from tests.delivery.simulated_run import SETTLED_WITHIN_S, Outcome
from tests.delivery.skills import Body

RESOURCES = {"drive": {"base"}, "patrol": {"base", "head"}, "look": {"head"}, "hold": {"arm"}}


def broken(run: Outcome) -> list[str]:
    """The promises that do not hold, a line for each; none if all is well."""
    problems = list(run.moments)
    if not run.settled:
        still_open = [call.call_id for call in run.calls if call.state != "closed"]
        problems.append(
            f"not settled {SETTLED_WITHIN_S} s after the faults: open {still_open}, unacknowledged"
            f" {run.unacknowledged}"
        )
    for check in (_calls, _leases, _views, _readers, _accepted, _agent, _bodies):
        problems += check(run)
    return problems


def _by_call(run: Outcome) -> dict[str, list[ToolEvent]]:
    found = defaultdict(list)
    for entry in run.journal:
        found[entry.event.call_id].append(entry.event)
    return found


def _calls(run: Outcome) -> Iterator[str]:
    """1..n, open first, one close, last; a gap only where the journal was lost."""
    # Where journal and module die, nobody has the beginning of what was under way.
    headless_allowed = run.journal_lost and _modules_unheard(run)
    for call_id, events in _by_call(run).items():
        types = [event.type for event in events]
        if types[-1] != "close" or types.count("close") != 1:
            yield f"call {call_id} does not end with its one close: {types}"
        if "gap" in types and not run.journal_lost:
            yield f"call {call_id} has a gap: {[(e.seq, e.type) for e in events]}"
        expected = 1
        for event in events:
            first = event.data["from_seq"] if event.type == "gap" else event.seq
            if first != expected:
                yield f"call {call_id} has seq {first} where {expected} should be"
            expected = event.seq + 1
        if types[0] != "open" and not headless_allowed:
            yield f"call {call_id} begins with {types[0]}"
        if any(not (event.skill and event.caller) for event in events) and not headless_allowed:
            yield f"call {call_id} has an event without skill or caller"
        numbers = [event.text for event in events if event.type == "update"]
        if "gap" not in types and numbers != [str(n) for n in range(1, len(numbers) + 1)]:
            yield f"call {call_id} has updates {numbers}"
    for call_id, closed in run.rows.items():
        if not closed:
            yield f"call {call_id} is not closed in the journal"


def _modules_unheard(run: Outcome) -> bool:
    """Whether skills died, or ran on without being heard."""
    return any(i.kind in ("crash", "partition") and i.part != "bridge" for i in run.schedule.incidents)


def _leases(run: Outcome) -> Iterator[str]:
    if run.holders:
        yield f"still held at the end: {run.holders}"
    held: dict[str, str] = {}
    for entry in run.journal:
        event = entry.event
        if event.type == "open":
            for resource in event.data.get("resources", ()):
                if resource in held and not (run.journal_lost and _modules_unheard(run)):
                    yield f"{event.call_id} opens with {resource}, which {held[resource]} has not given back"
                held[resource] = event.call_id
        elif event.type == "close":
            held = {resource: holder for resource, holder in held.items() if holder != event.call_id}


def _views(run: Outcome) -> Iterator[str]:
    by_call = _by_call(run)
    for call in run.calls:
        events = by_call.get(call.call_id)
        if not events:
            yield f"call {call.call_id} is known and has no events"
            continue
        last = events[-1]
        reported = (call.last_seq, call.text, call.outcome, call.state)
        true = (last.seq, last.text, last.outcome, "closed" if last.type == "close" else "open")
        if reported != true:
            yield f"the broker says {reported} of call {call.call_id}, the journal {true}"
    unknown = set(by_call) - {call.call_id for call in run.calls}
    if unknown:
        yield f"the broker does not know {sorted(unknown)}"


def _readers(run: Outcome) -> Iterator[str]:
    for reader in run.readers:
        got = [(p.offset, p.event) for p in reader.record]
        true = [(p.offset, p.event) for p in run.journal if reader.caller in (None, p.event.caller)]
        if run.journal_lost:
            # Of what came after, all is read, behind a gap that says so.
            update = next((i for i, entry in reversed([*enumerate(reader.record)]) if _is_loss(entry.event)), None)
            if update is None:
                yield f"reader of {reader.caller} got no gap although the journal was lost"
            got = got[(update or 0) + 1 :]
        if got != true:
            offsets = [offset for offset, _ in got]
            yield f"reader of {reader.caller} got offsets {offsets}, the journal has {[offset for offset, _ in true]}"


def _is_loss(event: ToolEvent) -> bool:
    return event.type == "gap" and "from_offset" in event.data


def _accepted(run: Outcome) -> Iterator[str]:
    if run.journal_lost:
        return
    by_call = _by_call(run)
    for key, call_id in run.accepted.items():
        if call_id not in by_call:
            yield f"call {call_id} was accepted for key {key} and has no events"
    keys = [call.key for call in run.calls if call.key]
    for key in {key for key in keys if keys.count(key) > 1}:
        yield f"key {key} made {keys.count(key)} calls"


def _agent(run: Outcome) -> Iterator[str]:
    by_call = _by_call(run)
    if run.journal_lost:
        return
    offsets = {(p.event.call_id, p.event.seq): p.offset for p in run.journal}
    for number, life in enumerate(run.agent.lives):
        last_life = number == len(run.agent.lives) - 1
        delivered = defaultdict(list)
        for event in life.delivered:
            delivered[event.call_id].append(event)
        for call_id, events in by_call.items():
            if events[0].caller != run.agent.name:
                continue
            due = _due(life, call_id, events, offsets)
            got = [event.seq for event in sorted(delivered[call_id], key=lambda e: e.seq) if event.type != "progress"]
            if got != due[: len(got)] or (last_life and got != due):
                yield f"life {number} of the agent got {got} of call {call_id}, due were {due}"


def _due(life: AgentLife, call_id: str, events: list[ToolEvent], offsets: dict[tuple[str, int], int]) -> list[int]:
    """Seqs of the updates and the close of a call that a life of the agent must get, in order."""
    after = life.adopted.get(call_id, 0)
    return [
        event.seq
        for event in events
        if event.type in ("update", "close") and event.seq > after and offsets[call_id, event.seq] > life.offset
    ]


def _bodies(run: Outcome) -> Iterator[str]:
    """Two skills hold a resource at once only where one of them ran on in a process that counted as gone."""
    outcomes = {event.call_id: event.outcome for events in _by_call(run).values() for event in events[-1:]}
    runs = defaultdict(list)
    for body in run.bodies:
        runs[body.call_id].append(body)
    running = [body for body in run.bodies if body.ended is None]
    if running:
        yield f"still run at the end: {running}"
    for call_id, bodies in runs.items():
        if len({body.life for body in bodies}) < len(bodies) or (len(bodies) > 1 and not _modules_unheard(run)):
            yield f"call {call_id} ran {len(bodies)} times"
    if _modules_unheard(run):
        return
    for index, body in enumerate(run.bodies):
        for other in run.bodies[:index]:
            if _clash(body, other) and outcomes.get(other.call_id) is not Ending.LOST:
                yield f"{body} and {other} ran at once"


def _clash(body: Body, other: Body) -> bool:
    shared = RESOURCES.get(body.skill, set()) & RESOURCES.get(other.skill, set())
    return bool(shared) and other.begun <= body.begun < (other.ended or float("inf"))
