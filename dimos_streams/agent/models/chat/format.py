"""OpenAI's chat completions as servers speak them: makes our deltas of their chunks."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dimos_streams.agent.models.protocol import (
    Finish,
    ModelDelta,
    ReasoningDelta,
    ReasoningDetails,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)

SIGNATURE_FIELDS = ("extra_content", "provider_specific_fields")
"""The fields of a call in which Gemini, and LiteLLM in front of it, give signatures that they want back."""
THOUGHT_FIELDS = ("reasoning_details", "thinking_blocks")
"""The fields of an answer in which OpenRouter and LiteLLM give signed thoughts that they want back."""
_MOST_TOKENS = 10**12
_FINISHES = {
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_length": "length",
    **dict.fromkeys(("safety", "recitation", "blocklist", "prohibited_content", "spii", "refusal"), "content_filter"),
}


def chat_deltas(chunk: Mapping[str, Any]) -> Iterator[ModelDelta]:
    """Yield the deltas of a chunk; a whole completion, which servers send that don't stream, is one big chunk."""
    choice = _choice(chunk)
    delta = _mapping(choice.get("delta") or choice.get("message"))
    for key in ("reasoning_content", "reasoning"):
        if isinstance(delta.get(key), str) and delta[key]:
            yield ReasoningDelta(delta[key])
            break
    for field in THOUGHT_FIELDS:
        if details := tuple(part for part in _sequence(delta.get(field)) if isinstance(part, Mapping)):
            yield ReasoningDetails(field, details)
    yield from _content(delta.get("content"))
    if isinstance(delta.get("refusal"), str) and delta["refusal"]:
        yield TextDelta(delta["refusal"])
    calls = delta.get("tool_calls")
    for call in [calls] if isinstance(calls, Mapping) else _sequence(calls):
        yield _call_delta(_mapping(call))
    if isinstance(delta.get("function_call"), Mapping):  # as it was before there were several calls
        yield _call_delta({"index": 0, "function": delta["function_call"]})
    usage = _mapping(chunk.get("usage"))
    if (counted := _usage(usage)) is not None:
        yield counted
    reason = choice.get("finish_reason")
    if isinstance(reason, str) and reason:
        yield Finish(_FINISHES.get(reason.lower(), reason.lower()))


def stream_problem(chunk: Mapping[str, Any]) -> str:
    """The text of an error that is a chunk of its own, without the field of errors: vLLM's has the text as a
    ``message``, and Groq's beside an answer without choices. Empty for any other chunk."""
    if chunk.get("choices"):
        return ""
    said = chunk.get("message") or chunk.get("detail") or _mapping(chunk.get("x_groq")).get("error")
    return said if isinstance(said, str) else ""


def _content(content: Any) -> Iterator[ModelDelta]:
    if isinstance(content, str):
        if content:
            yield TextDelta(content)
        return
    for part in map(_mapping, _sequence(content)):
        if part.get("type") == "thinking":
            thoughts = part.get("thinking")
            inner = thoughts if isinstance(thoughts, str) else "".join(map(_text, _sequence(thoughts)))
            if inner:
                yield ReasoningDelta(inner)
        elif _text(part):
            yield TextDelta(_text(part))


def _call_delta(call: Mapping[str, Any]) -> ToolCallDelta:
    function = _mapping(call.get("function"))
    index, call_id, name, arguments = (
        call.get("index"),
        call.get("id"),
        function.get("name"),
        function.get("arguments"),
    )
    if arguments is not None and not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    return ToolCallDelta(
        index=index if isinstance(index, int) and index >= 0 else None,
        id=str(call_id) if call_id is not None else None,
        name=name if isinstance(name, str) else "",
        arguments=arguments or "",
        extra={field: call[field] for field in SIGNATURE_FIELDS if call.get(field)} or None,
    )


def _text(part: Any) -> str:
    text = _mapping(part).get("text")
    return text if isinstance(text, str) else ""


def _choice(chunk: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answer in a chunk, or an empty object: some servers give several at once, though one was asked for, and
    only the first counts."""
    choices = sorted(map(_mapping, _sequence(chunk.get("choices"))), key=_index)
    if not choices or (_index(choices[0]) and "message" not in choices[0]):
        return {}
    return choices[0]


def _index(choice: Mapping[str, Any]) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) and not isinstance(index, bool) and index > 0 else 0


def _usage(usage: Mapping[str, Any]) -> TokenUsage | None:
    """The usage that a server reports, or None if it reports nothing, or what can't be numbers of tokens: then they
    are estimated."""
    details = _mapping(usage.get("prompt_tokens_details"))
    cached = _count(details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens")) or 0
    sent, received = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    if sent is None or received is None:
        return None
    # Gateways to other APIs count what the server had seen before apart from the rest.
    counted = TokenUsage(sent if cached <= sent else sent + cached, received, cached)
    return counted if counted != TokenUsage() else None  # servers that don't count say 0


def _count(value: Any) -> int | None:
    """Return a number of tokens, rounded up if it is not whole, and 0 if there is none; None for what is no such
    number."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_TOKENS:
        return None
    return math.ceil(value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()
