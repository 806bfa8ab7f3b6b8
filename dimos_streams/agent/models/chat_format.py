"""OpenAI's chat completions as servers speak them: requests out of ours, our deltas out of their chunks."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from dimos_streams.agent.models.base import (
    AssistantMessage,
    Finish,
    ImagePart,
    Message,
    ModelDelta,
    ReasoningDelta,
    SystemMessage,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolResultMessage,
    ToolSchema,
    Usage,
    UserMessage,
)

_NO_PARAMETERS = {"type": "object", "properties": {}}
_FINISHES = {
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "max_tokens": "length",
}


def chat_tools(tools: Sequence[ToolSchema]) -> list[dict[str, Any]]:
    """The tools of a request."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters) or _NO_PARAMETERS,
            },
        }
        for tool in tools
    ]


def chat_messages(
    messages: Iterable[Message], *, images: bool = True, user_after_tool: bool = True
) -> list[dict[str, Any]]:
    """The messages of a request.

    Only a user's message may carry images, and the results of one answer must not be torn apart: so images of
    results follow the last of them. Neighbouring messages of users become one, because some servers' templates
    want roles to alternate; without ``user_after_tool`` an answer that says nothing comes between results and users.
    """
    built: list[dict[str, Any]] = []
    waiting: list[dict[str, Any]] = []
    for message in messages:
        if waiting and not isinstance(message, ToolResultMessage):
            _add_user(built, waiting, user_after_tool)
            waiting = []
        if isinstance(message, SystemMessage):
            built.append({"role": "system", "content": message.text})
        elif isinstance(message, UserMessage):
            _add_user(built, _parts(message.text, message.images, images), user_after_tool)
        elif isinstance(message, AssistantMessage):
            built.append(_assistant(message))
        else:
            text = message.text if images else _told(message.text, message.images)
            built.append({"role": "tool", "tool_call_id": message.tool_call_id, "content": text})
            if images and message.images:
                source = f"From the result of {message.name} ({message.tool_call_id}):"
                waiting += _parts(source, message.images, images)
    if waiting:
        _add_user(built, waiting, user_after_tool)
    for entry in built:
        if isinstance(entry["content"], list) and all(part["type"] == "text" for part in entry["content"]):
            entry["content"] = "\n\n".join(part["text"] for part in entry["content"])
    return built


def chat_deltas(chunk: Mapping[str, Any]) -> Iterator[ModelDelta]:
    """What a chunk says; a whole completion, which servers send that don't stream, is one big chunk."""
    choices = _sequence(chunk.get("choices"))
    choice = _mapping(choices[0]) if choices else {}
    delta = _mapping(choice.get("delta") or choice.get("message"))
    for key in ("reasoning_content", "reasoning"):
        if isinstance(delta.get(key), str) and delta[key]:
            yield ReasoningDelta(delta[key])
            break
    yield from _content(delta.get("content"))
    if isinstance(delta.get("refusal"), str) and delta["refusal"]:
        yield TextDelta(delta["refusal"])
    calls = delta.get("tool_calls")
    for call in [calls] if isinstance(calls, Mapping) else _sequence(calls):
        yield _call_delta(_mapping(call))
    usage = _mapping(chunk.get("usage"))
    if usage:
        details = _mapping(usage.get("prompt_tokens_details"))
        cached = details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens")
        yield Usage(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")), _count(cached))
    reason = choice.get("finish_reason")
    if isinstance(reason, str) and reason:
        yield Finish(_FINISHES.get(reason.lower(), reason.lower()))


def _add_user(built: list[dict[str, Any]], parts: list[dict[str, Any]], user_after_tool: bool) -> None:
    if built and built[-1]["role"] == "user":
        built[-1]["content"] += parts
        return
    if built and built[-1]["role"] == "tool" and not user_after_tool:
        built.append({"role": "assistant", "content": "(noted)"})
    built.append({"role": "user", "content": list(parts)})


def _parts(text: str, given: Sequence[ImagePart], images: bool) -> list[dict[str, Any]]:
    if not images:
        return [{"type": "text", "text": _told(text, given)}]
    pictures = [
        {
            "type": "image_url",
            "image_url": {"url": f"data:{image.media_type};base64,{base64.b64encode(image.data).decode()}"},
        }
        for image in given
    ]
    return [{"type": "text", "text": text}, *pictures]


def _told(text: str, given: Sequence[ImagePart]) -> str:
    return f"{text}\n(Images that you can't see: {len(given)}.)" if given else text


def _assistant(message: AssistantMessage) -> dict[str, Any]:
    built: dict[str, Any] = {"role": "assistant", "content": message.text}
    if message.tool_calls:
        built["content"] = message.text or None
        built["tool_calls"] = [_call(call) for call in message.tool_calls]
    return built


def _call(call: ToolCall) -> dict[str, Any]:
    """A call of the past. Servers refuse a whole conversation for one name or arguments that are damaged."""
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", call.name)[:64] or "unknown"
    arguments = call.arguments if _is_object(call.arguments) else "{}"
    return {
        **(call.extra or {}),
        "id": call.id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def _is_object(text: str) -> bool:
    try:
        return isinstance(from_json(text), dict)
    except ValueError:
        return False


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
        extra={"extra_content": call["extra_content"]} if call.get("extra_content") else None,
    )


def _text(part: Any) -> str:
    text = _mapping(part).get("text")
    return text if isinstance(text, str) else ""


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()
