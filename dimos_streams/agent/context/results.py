"""Results as models see them: large ones shortened, old ones masked, all kept whole for a while."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dimos_streams.agent.context.images import Pictures
from dimos_streams.agent.context.memo import Memo
from dimos_streams.agent.context.settings import ResultSettings
from dimos_streams.agent.models.protocol import AssistantMessage, Message, ToolResultMessage, UserMessage
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.errors import SkillError

READ_RESULT = "read_result"
_REMEMBERED = 1000
_AROUND = 200


class ResultStore:
    """Whole texts by reference, bounded in bytes; the oldest go first. The same text has the same reference."""

    def __init__(self, capacity_bytes: int = 32_000_000) -> None:
        self._capacity = capacity_bytes
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._references: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._bytes = 0
        self._forgotten = 0

    @property
    def bytes(self) -> int:
        """The size of what is kept, in bytes."""
        return self._bytes

    @property
    def forgotten(self) -> int:
        """The number of texts that were kept and are not any more."""
        return self._forgotten

    def put(self, text: str) -> str:
        """Keep a text; return its reference."""
        known = self._references.get(text)
        if known is not None:
            self._texts.move_to_end(known)
            return known
        reference = f"result-{next(self._numbers)}"
        self._texts[reference] = text
        self._references[text] = reference
        self._bytes += _size(text)
        while self._bytes > self._capacity and len(self._texts) > 1:
            _, gone = self._texts.popitem(last=False)
            del self._references[gone]
            self._bytes -= _size(gone)
            self._forgotten += 1
        return reference

    def __contains__(self, reference: str) -> bool:
        return reference in self._texts

    def get(self, reference: str) -> str:
        """Return the whole text. Raises ``SkillError`` if it is not kept (any more)."""
        if reference not in self._texts:
            kept = f"{next(iter(self._texts))} to {next(reversed(self._texts))}" if self._texts else "none"
            raise SkillError(f"no result is kept as {reference!r} (kept: {kept}); older ones are forgotten")
        return self._texts[reference]


@dataclass(frozen=True, slots=True)
class _Shortened:
    """The reference to the whole of a shortened text, and its length."""

    reference: str
    characters: int


@dataclass(frozen=True, slots=True)
class _Masked:
    """A note that stands for an old message, with the reference to the whole of it."""

    instead: ToolResultMessage | UserMessage
    reference: str


@dataclass(frozen=True, slots=True)
class _Old:
    """Old messages, and what a model saw of them, with the room for pictures and the number of texts that the store
    had forgotten: as long as both are the same, it sees the same."""

    messages: tuple[Message, ...] = ()
    shaped: tuple[Message, ...] = ()
    room: int = 0
    forgotten: int = 0


class ResultPipeline:
    """Shapes what a model sees of results, for one conversation."""

    def __init__(
        self, store: ResultStore, settings: ResultSettings | None = None, pictures: Pictures | None = None
    ) -> None:
        """``store`` may be shared; without ``pictures`` models see none."""
        self._store = store
        self._pictures = pictures
        self._settings = settings or ResultSettings()
        self._shortened = NewestEntries[str, _Shortened](_REMEMBERED)
        self._masked: Memo[ToolResultMessage | UserMessage, _Masked] = Memo(self._mask)
        self._old = _Old()

    def shorten(self, text: str, *, skill: str, is_error: bool = False) -> str:
        """Return the text as the model gets it, once, when it goes into the record: head and tail, with how much is
        left out, and the reference to the whole. Errors stay whole."""
        limit = self._settings.max_characters
        if is_error or len(text) <= limit:
            return text
        reference = self._store.put(text)
        head, tail = text[: limit * 3 // 4], text[-(limit // 4) :]
        left_out = len(text) - len(head) - len(tail)
        note = (
            f"[{left_out} of {len(text)} characters of what {skill} gave are left out here; "
            f"{READ_RESULT}(reference={reference!r}, offset={len(head)}) reads on]"
        )
        shortened = f"{head}\n{note}\n{tail}"
        self._shortened[shortened] = _Shortened(reference, len(text))
        return shortened

    def mask(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the messages of a request with old results replaced by notes; what was masked stays masked. The time
        that it takes depends on what is new, not on the length of the conversation."""
        everything = tuple(messages)
        recent_from = self._recent_from(everything)
        recent, room = self._shape(everything[recent_from:], self._settings.images, old=False)
        return (*self._shape_old(everything[:recent_from], room), *recent)

    def _recent_from(self, messages: tuple[Message, ...]) -> int:
        """The number of messages that are older than ``masked_after`` answers."""
        after, answers = self._settings.masked_after, 0
        for index in range(len(messages) - 1, -1, -1) if after is not None else ():
            answers += isinstance(messages[index], AssistantMessage)
            if after is not None and answers > after:
                return index
        return 0

    def _shape_old(self, messages: tuple[Message, ...], room: int) -> tuple[Message, ...]:
        known = self._old
        seen = len(known.messages)
        newer, left = self._shape(messages[seen:], room, old=True)
        forgotten = self._store.forgotten
        if (left, forgotten) == (known.room, known.forgotten) and messages[:seen] == known.messages:
            shaped = known.shaped + newer
        else:
            shaped, _ = self._shape(messages, room, old=True)
        self._old = _Old(messages, shaped, room, forgotten)
        return shaped

    def _shape(self, messages: tuple[Message, ...], room: int, *, old: bool) -> tuple[tuple[Message, ...], int]:
        """Return messages as a model sees them with room for ``room`` pictures, and the room left for those before
        them."""
        shaped = list(messages)
        for index in range(len(shaped) - 1, -1, -1):
            message = shaped[index]
            if not isinstance(message, (ToolResultMessage, UserMessage)):
                continue
            if old and self._may_go(message):
                shaped[index] = self._instead_of(message)
            elif message.event is not None:
                message = shaped[index] = self._with_images(message, room)
                room -= len(message.images)
        return tuple(shaped), room

    def _may_go(self, message: ToolResultMessage | UserMessage) -> bool:
        """Return whether a message may be masked: results and updates of calls that are long enough may; errors and
        an operator's input may not."""
        if len(message.text) <= self._settings.masked_above:
            return False
        if isinstance(message, ToolResultMessage):
            return not message.is_error
        return message.event is not None and message.event.data.get("outcome", "completed") == "completed"

    def _instead_of(self, message: ToolResultMessage | UserMessage) -> ToolResultMessage | UserMessage:
        """The message that stands for an old one. It stays the same for a message as long as its whole is kept."""
        masked = self._masked.of(message)
        return masked.instead if masked.reference in self._store else self._masked.again(message).instead

    def _mask(self, message: ToolResultMessage | UserMessage) -> _Masked:
        known = self._shortened.get(message.text)
        reference = known.reference if known else self._store.put(message.text)
        characters = known.characters if known else len(message.text)
        name = message.name if isinstance(message, ToolResultMessage) else "a message"
        note = f"[old result of {name}, {characters} characters: {READ_RESULT}(reference={reference!r}) shows it]"
        return _Masked(replace(message, text=note, images=()), reference)

    def _with_images(self, message: ToolResultMessage | UserMessage, room: int) -> ToolResultMessage | UserMessage:
        """Return the message with the pictures that its event brings, at most ``room``; it says how many are left
        out."""
        pictures, event = self._pictures, message.event
        if pictures is None or event is None or not (names := pictures.names(event)):
            return message
        loaded = [pictures.load(name, event) for name in names[: max(0, room)]]
        left_out = len(names) - len(loaded)
        note = f"\n[{left_out} picture{'s' if left_out > 1 else ''} not shown any more]" if left_out else ""
        images = tuple(image for image in loaded if image is not None)
        return replace(message, text=f"{message.text}{note}", images=images)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def read_part(text: str, *, offset: int, length: int, search: str) -> str:
    """Return a part of a text with its place; with ``search``, the part around each place where that occurs."""
    if not search:
        part = text[offset : offset + length]
        end = offset + len(part)
        more = f"; more from offset {end}" if end < len(text) else "; that is the end"
        return f"[characters {offset} to {end} of {len(text)}{more}]\n{part}"
    found: list[str] = []
    folded, sought = _folded(text), _folded(search)
    place, room = folded.find(sought, offset), length
    while place >= 0 and room > 0:
        begin = max(0, place - _AROUND)
        part = text[begin : place + len(search) + _AROUND][:room]
        found.append(f"[at {place}]\n{part}")
        room -= len(part)
        place = folded.find(sought, place + len(search) + _AROUND)
    if not found:
        return f"[{search!r} does not occur from offset {offset} on, in {len(text)} characters]"
    more = f"\n[more from offset {place}]" if place >= 0 else ""
    return "\n".join(found) + more


def _folded(text: str) -> str:
    """A text in lower case, each character at its place: the one that has two there is replaced."""
    return text.replace("\u0130", "i").lower()
