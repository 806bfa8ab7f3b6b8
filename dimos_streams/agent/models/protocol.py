"""The protocol between the agent and a model. Every model is behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from dimos_streams.agent.models.thoughts import NO_THOUGHTS, Thoughts
from dimos_streams.common.readable.surrogates import well_formed
from dimos_streams.common.secrets import redacted
from dimos_streams.errors import DimosStreamsError
from dimos_streams.tool_stream.event import ToolEvent

Speaker: TypeAlias = Literal["operator", "task", "data"]
"""The one who says something: an operator, the agent that a sub-agent works for, or the world and the agent's own
program."""


CALL_FAILED, NOT_UNDERSTOOD = "call_failed", "not_understood"
"""Finish reasons of a model that takes its input as commands: one has failed, or is not one that it knows."""


class ModelError(DimosStreamsError):
    """Raised when a model could not answer. The text says which model and why.

    ``retryable`` is True if the same request may succeed later; ``retry_after_s`` is the time in s until then, as the
    server says, and ``status`` its HTTP status.
    """

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        retry_after_s: float | None = None,
        status: int | None = None,
    ) -> None:
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.status = status
        super().__init__(redacted(well_formed(message)))


class ContextLengthError(ModelError):
    """Raised when a request was longer than what the model can look at; a shorter one may succeed."""


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A skill as it is offered to a model. ``parameters`` is a JSON Schema of the arguments' object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model asked for. ``id`` is unique within its message and comes back with the result."""

    id: str
    name: str
    arguments: str
    """The arguments as JSON, as the model wrote it; whole only if the call was run."""
    extra: Mapping[str, Any] | None = None
    """Data that the server wants back with the call (signatures of hidden reasoning)."""


@dataclass(frozen=True, slots=True)
class ImagePart:
    """A picture in a message."""

    data: bytes
    media_type: str = "image/jpeg"


@dataclass(frozen=True, slots=True)
class SystemMessage:
    """The system prompt, which is the first message if there is one."""

    text: str


@dataclass(frozen=True, slots=True)
class UserMessage:
    """Something that reaches the agent from outside: an operator's input, or an event of a call that goes on."""

    text: str
    event: ToolEvent | None = None
    """The event that the text renders; None for input."""
    images: tuple[ImagePart, ...] = ()
    task: bool = False
    """True if the agent that delegates speaks, and no operator."""
    is_past: bool = False
    """True if it is of missions that were all ended early: nobody waits for a word on it."""

    @property
    def speaker(self) -> Speaker:
        """The one who said it."""
        return "data" if self.event is not None else "task" if self.task else "operator"


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """An answer of the model; each of its calls is answered by a ``ToolResultMessage`` that follows."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    thoughts: Thoughts = NO_THOUGHTS
    """The thoughts before it, for servers that want them back."""


@dataclass(frozen=True, slots=True)
class ToolResultMessage:
    """The answer to one tool call."""

    tool_call_id: str
    name: str
    text: str
    is_error: bool = False
    images: tuple[ImagePart, ...] = ()
    """Pictures, which reach only models that can see; others are informed that there are some."""
    event: ToolEvent | None = None
    """The event that the text renders, if it is a skill's; None otherwise."""
    note: str = ""
    """A remark of the agent itself on the call, before the text."""
    speaker: Speaker = "data"
    """``operator`` if the text is an operator's answer."""


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage


def characters(message: Message) -> int:
    """Return the length of a message: of its text, and of the names and arguments of its calls."""
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    return len(message.text) + sum(len(call.name) + len(call.arguments) for call in calls)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request for one answer."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """The next piece of what a model thinks before it answers. It is not part of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDetails:
    """The next pieces of the server's own form of what a model thinks, which it wants back in the same field."""

    field: str
    parts: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallDelta:
    """A piece of a tool call. Servers differ in what they give: index, id, both, late or neither."""

    index: int | None = None
    id: str | None = None
    name: str = ""
    arguments: str = ""
    extra: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The tokens of one request; the last usage of each attempt in a stream counts."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """The part of ``input_tokens`` that the server had seen before."""
    estimated: bool = False
    """True if the server has reported none."""

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.estimated or other.estimated,
        )


UNFINISHED = frozenset({"content_filter", "error", "abort", "insufficient_system_resource"})
"""The finish reasons after which no call is run: a server has held its answer back, or could not finish it."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of an answer. A stream that ends without it was cut.

    Reasons are ``"stop"``, ``"tool_calls"``, ``"length"``, ``"content_filter"`` and whatever else a model has to say.
    """

    reason: str
    about: tuple[str, ...] = ()
    """The inputs that the reason is about; empty if it is about all of them."""

    def or_worse(self, other: Finish) -> Finish:
        """Return this end or another one of the same answer, whichever says that more of the answer is missing: some
        servers send two."""
        return max(self, other, key=lambda each: 2 * (each.reason in UNFINISHED) + (each.reason == "length"))


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of a stream without a ``Finish``, with the reason if it is known."""

    reason: str


@dataclass(frozen=True, slots=True)
class AskedAgain:
    """The end of an attempt that broke off before the answer began. Its tokens are spent; the pieces that follow are
    of another attempt."""


STALE = "not run: input of the operator was withdrawn meanwhile; ask again for what is still wanted"
"""The result of a call that was asked for when that input was still seen."""

ModelDelta: TypeAlias = (
    TextDelta | ReasoningDelta | ReasoningDetails | ToolCallDelta | TokenUsage | Finish | Cut | AskedAgain
)


class Model(Protocol):
    """A source of answers."""

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        """Return the answer in pieces, as they come. Closing the iterator ends the request. Raises ``ModelError``."""

    async def close(self) -> None:
        """Let go of connections. Twice is fine."""
