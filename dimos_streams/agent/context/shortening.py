"""Shortens a conversation: chooses what of it goes first.

The oldest goes first, an answer of the model with the results of the calls that it asked for, and with what it
answers. What stays is the newest of all, the newest message of a user, the operator's input since the last answer
that asked for nothing more, and, where there is none, the newest input with the answer that closed it. Where nothing
else is left, thoughts go, and the middles of long texts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from dimos_streams.agent.models.protocol import AssistantMessage, Message, ToolResultMessage, UserMessage, characters
from dimos_streams.agent.models.thoughts import NO_THOUGHTS

Messages = Sequence[Message | None]
"""Messages in order, with None for entries that models don't see."""

_SHORTEST = 500
"""The length in characters up to which texts are left as they are."""


def is_final(message: Message | None) -> bool:
    """Return whether a message is an answer after which nothing of what came before is left to do."""
    return isinstance(message, AssistantMessage) and not message.tool_calls


def is_input(message: Message | None) -> bool:
    """Return whether a message is one by which somebody has ordered something."""
    return isinstance(message, UserMessage) and message.event is None


def expendable(messages: Messages, size: Callable[[range], int], goal: int) -> set[int]:
    """The indexes of the messages that go, so that the rest has no more than ``goal``, or as little as the rule
    allows."""
    units = _units(messages)
    left = sum(map(size, units))
    kept = _kept(messages, units)
    gone: list[range] = []
    is_answered = True
    for number, unit in enumerate(units):
        if number in kept:
            is_answered = is_final(messages[unit.start])
            continue
        # No answer to what has gone stays: there are servers that refuse one that follows nothing, or another one.
        headless = gone and is_answered and isinstance(_seen_from(messages, unit.start), AssistantMessage)
        if left <= goal and not headless:
            break
        gone.append(unit)
        left -= size(unit)
    return set(itertools.chain.from_iterable(gone))


def halved(messages: Messages) -> list[Message | None] | None:
    """Return the messages with about half of their text, or None if they can't become shorter."""
    sizes = [_size(message) for message in messages]
    gone = expendable(messages, lambda unit: sum(sizes[unit.start : unit.stop]), sum(sizes) // 2)
    if any(messages[index] is not None for index in gone):
        return [None if index in gone else message for index, message in enumerate(messages)]
    limit = max(_SHORTEST, max(map(_longest, messages), default=0) // 2)
    shorter = [_cut(message, limit) for message in messages]
    return shorter if shorter != list(messages) else None


def _units(messages: Messages) -> list[range]:
    """The units of messages, oldest first: an answer with all up to the last result of its calls; anything else is by
    itself."""
    starts, is_inside = [], False
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message is not None:
            is_inside = _is_result(message)
        if not is_inside or index == 0:
            starts.append(index)
    return [range(start, end) for start, end in itertools.pairwise((*reversed(starts), len(messages)))]


def _seen_from(messages: Messages, start: int) -> Message | None:
    """The first message at or behind an index that a model sees."""
    return next((messages[index] for index in range(start, len(messages)) if messages[index] is not None), None)


def _kept(messages: Messages, units: Sequence[range]) -> set[int]:
    """The numbers of the units that stay."""
    last = max((n for n, unit in enumerate(units) if messages[unit.start] is not None), default=len(units) - 1)
    closed = (number for number in range(last, -1, -1) if is_final(messages[units[number].start]))
    newest = range(next(closed, -1) + 1, len(units))
    said = (number for number in range(last, -1, -1) if isinstance(messages[units[number].start], UserMessage))
    return {
        last,
        next(said, last),
        *_newest_input(messages, units),
        *(n for n in newest if is_input(messages[units[n].start])),
    }


def _newest_input(messages: Messages, units: Sequence[range]) -> Iterator[int]:
    """The operator's newest input, and the answer that closed it."""
    numbers = range(len(units))
    newest_input = max((number for number in numbers if is_input(messages[units[number].start])), default=None)
    if newest_input is None:
        return
    yield newest_input
    yield from itertools.islice((n for n in numbers[newest_input:] if is_final(messages[units[n].start])), 1)


def _is_result(message: Message) -> bool:
    return isinstance(message, ToolResultMessage)


def _size(message: Message | None) -> int:
    return 0 if message is None else characters(message)


def _longest(message: Message | None) -> int:
    if message is None:
        return 0
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    return max(len(message.text), *(len(call.arguments) for call in calls), 0)


def _cut(message: Message | None, limit: int) -> Message | None:
    if isinstance(message, AssistantMessage):
        calls = tuple(
            call if len(call.arguments) <= limit else replace(call, arguments="{}") for call in message.tool_calls
        )
        message = replace(message, tool_calls=calls, thoughts=NO_THOUGHTS)
    if message is None or len(message.text) <= limit:
        return message
    head, tail = message.text[: limit // 2], message.text[-(limit // 4) :]
    return replace(message, text=f"{head}\n[{len(message.text) - len(head) - len(tail)} characters left out]\n{tail}")
