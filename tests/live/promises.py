"""Checks what DESIGN.md promises of a run's tool streams, from what readers of them got."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dimos_streams.agent.context.render import answer_text, update_body, update_head
from dimos_streams.client.iterators import closing
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.gateway import SkillGateway

_SHOWN_TEXT = 4000
_NOT_ANSWERED = ("No answer within", "The agent was restarted. Call {}", "call {} was running")
"""How results begin that an agent gives to a call of that id that outlasts its timeout, its turn, its process."""
_GIVEN_UP = "; it did not end when it was cancelled and may still run"
"""Stands in the end that an agent gives to a call of a process that is held for longer than an order to end waits."""


async def read_journal(gateway: SkillGateway) -> list[ToolEvent]:
    """All events up to now, as a reader gets them that was not there before."""
    offset = await gateway.offset()
    journal: list[ToolEvent] = []
    async with closing(gateway.events(after=0)) as events:
        async for journalled in events:
            journal.append(journalled.event)
            if journalled.offset == offset:
                break
    return journal


def by_call(events: Iterable[ToolEvent]) -> dict[str, list[ToolEvent]]:
    calls: dict[str, list[ToolEvent]] = {}
    for event in events:
        calls.setdefault(event.call_id, []).append(event)
    return calls


def check_journal(events: Sequence[ToolEvent]) -> None:
    """Every event of every call is there once and in order; each call has one close, which is its last."""
    assert [event for event in events if event.type == "gap"] == []
    for call_id, of_call in by_call(events).items():
        assert [event.seq for event in of_call] == list(range(1, len(of_call) + 1)), call_id
        assert of_call[0].type == "open", call_id
        assert [event.type for event in of_call].count("close") == 1, call_id
        assert of_call[-1].type == "close", call_id


def check_reader(read: Sequence[ToolEvent], journal: Sequence[ToolEvent]) -> None:
    """A reader got what must not be coalesced once and in order, and of progress nothing twice."""
    assert [event for event in read if event.type != "progress"] == [e for e in journal if e.type != "progress"]
    for call_id, of_call in by_call(read).items():
        seqs = [event.seq for event in of_call]
        assert seqs == sorted(set(seqs)), call_id


def check_conversation(journal: Sequence[ToolEvent]) -> int:
    """The agent's conversation, as its ``say`` calls report it, has every event of their calls that is not progress
    once and in order. Of a ``say`` that did not complete it has no more than that, but for the end of a call that was
    given up. How many calls were looked at."""
    calls = by_call(journal)
    checked = 0
    for of_say in (events for events in calls.values() if events[0].skill == "say"):
        reported = _updates(of_say)
        for call_id, lines in reported.items():
            if call_id not in calls or calls[call_id][0].caller != "agent":
                continue
            said = [event for event in calls[call_id] if event.type in ("update", "close")]
            if lines[0].startswith(tuple(text.format(call_id) for text in _NOT_ANSWERED)):
                expected = [lines[0], *map(update_text, said)]
            elif calls[call_id][0].data.get("parent"):  # a skill began it on the agent's behalf
                expected = [*map(update_text, said)]
            else:
                expected = [answer_text(said[0]), *map(update_text, said[1:])]
            expected = [text[:_SHOWN_TEXT] for text in expected]
            complete = of_say[-1].outcome is Outcome.COMPLETED
            if not complete and _GIVEN_UP in lines[-1]:
                lines = lines[:-1]
            expected = expected if complete else expected[: len(lines)]
            assert lines == expected, (calls[call_id][0].skill, call_id)
            checked += 1
    return checked


def _updates(say: Iterable[ToolEvent]) -> dict[str, list[str]]:
    """The texts of a conversation about each call."""
    reported: dict[str, list[str]] = {}
    for event in say:
        entry = event.data.get("entry", {})
        if event.type == "update" and entry.get("call_id") and entry["role"] in ("tool", "event"):
            reported.setdefault(entry["call_id"], []).append(entry["text"])
    return reported


def update_text(event: ToolEvent) -> str:
    return f"{update_head(event)}{update_body(event)}"
