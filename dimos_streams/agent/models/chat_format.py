"""OpenAI's chat completions as servers speak them: requests out of ours, our deltas out of their chunks."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dimos_streams.agent.models.base import (
    AssistantMessage,
    Finish,
    ImagePart,
    Message,
    ModelDelta,
    ReasoningDelta,
    Speaker,
    SystemMessage,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolResultMessage,
    ToolSchema,
    Usage,
    UserMessage,
)
from dimos_streams.agent.models.framing import RULES, block, result_blocks, user_block
from dimos_streams.text import parse_json

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
    messages: Iterable[Message], *, images: bool = True, user_after_tool: bool = True, alternate: bool = False
) -> list[dict[str, Any]]:
    """The messages of a request, each text in its block (``framing``).

    Only a user's message may carry images, and the results of one answer must not be torn apart: so images of
    results follow the last of them. Neighbouring messages of one speaker become one; with ``alternate``, for servers
    that insist on it, those of different speakers do, too. Without ``user_after_tool`` an answer that says nothing
    comes between results and users.
    """
    built = _Built(user_after_tool=user_after_tool, alternate=alternate)
    given = list(messages)
    if not any(isinstance(message, SystemMessage) for message in given):
        given.insert(0, SystemMessage(""))
    pictures: list[dict[str, Any]] = []
    for message in given:
        if pictures and not isinstance(message, ToolResultMessage):
            built.add_user("data", pictures)
            pictures = []
        if isinstance(message, SystemMessage):
            built.add("system", "\n\n".join(part for part in (message.text, RULES) if part))
        elif isinstance(message, UserMessage):
            told = message if images else replace(message, text=_told(message.text, message.images))
            built.add_user(message.speaker, [_text_part(user_block(told)), *_images(message.images, images)])
        elif isinstance(message, AssistantMessage):
            built.messages.append(_assistant(message))
        else:
            told_result = message if images else replace(message, text=_told(message.text, message.images))
            built.add("tool", result_blocks(told_result), tool_call_id=message.tool_call_id)
            if images and message.images:
                pictures += [_text_part(_source_of_pictures(message)), *_images(message.images, images)]
    if pictures:
        built.add_user("data", pictures)
    return built.finished()


class _Built:
    """Messages as they are sent, while they are put together."""

    def __init__(self, *, user_after_tool: bool, alternate: bool) -> None:
        self.messages: list[dict[str, Any]] = []
        self._user_after_tool = user_after_tool
        self._alternate = alternate
        self._speaker: Speaker | None = None

    def add(self, role: str, content: str, **fields: str) -> None:
        self.messages.append({"role": role, **fields, "content": content})

    def add_user(self, speaker: Speaker, parts: list[dict[str, Any]]) -> None:
        """Words of operators are joined with nobody else's, but where a server insists."""
        last = self.messages[-1]["role"] if self.messages else ""
        if last == "user" and (speaker == self._speaker or self._alternate):
            self.messages[-1]["content"] += parts
        else:
            if last == "tool" and not self._user_after_tool:
                self.messages.append({"role": "assistant", "content": "(noted)"})
            self.messages.append({"role": "user", "content": list(parts)})
        self._speaker = speaker

    def finished(self) -> list[dict[str, Any]]:
        """Content that is text only is sent as text, which every server takes."""
        for entry in self.messages:
            if isinstance(entry["content"], list) and all(part["type"] == "text" for part in entry["content"]):
                entry["content"] = "\n\n".join(part["text"] for part in entry["content"])
        return self.messages


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


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _images(given: Sequence[ImagePart], images: bool) -> list[dict[str, Any]]:
    return [
        {
            "type": "image_url",
            "image_url": {"url": f"data:{image.media_type};base64,{base64.b64encode(image.data).decode()}"},
        }
        for image in given
        if images
    ]


def _source_of_pictures(message: ToolResultMessage) -> str:
    call = message.event.call_id if message.event else ""
    text = f"Pictures of the result of {message.name} ({message.tool_call_id}):"
    return block("data", text, skill=message.name, call=call, event="pictures")


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
        return isinstance(parse_json(text), dict)
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
