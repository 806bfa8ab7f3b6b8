"""The rules of OpenAI's chat completions, and what of a request breaks them.

They are those of the strictest servers that take the format as it is documented: JSON without NaN and without halves
of characters; the system message first and alone; an answer's calls with ids of their own, each answered once and
before anything else is said; arguments that are a JSON object; no message without content.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

THOUGHT_FIELDS = ("reasoning_details", "thinking_blocks")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_FIELDS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "reasoning_content", *THOUGHT_FIELDS},
    "tool": {"role", "content", "tool_call_id"},
}


def broken_rules(body: bytes) -> list[str]:
    """The mistakes in the body of a request, a sentence for each rule that it breaks; nothing for a sound one."""
    try:
        request = json.loads(body.decode(), parse_constant=_refuse)
    except ValueError as error:
        return [f"the body is not JSON: {error}"]
    if not isinstance(request, dict) or not isinstance(request.get("messages"), list) or not request["messages"]:
        return ["the body is no object with messages"]
    return [*_data(request, "body"), *_messages(request["messages"]), *_tools(request.get("tools", []))]


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number")


def _data(value: Any, where: str) -> Iterator[str]:
    """Texts with half a character, and numbers that JSON does not have."""
    if isinstance(value, str):
        if any("\ud800" <= char <= "\udfff" for char in value):
            yield f"{where} has half a character: {value[:80]!a}"
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield f"{where} is {value}"
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _data(key, f"a key of {where}")
            yield from _data(part, f"{where}.{key}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _data(part, f"{where}[{index}]")


def _messages(messages: list[Any]) -> Iterator[str]:
    calls = _CallIds()
    for number, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role not in _FIELDS:
            yield f"message {number} has the role {role!r}"
            continue
        where = f"message {number} ({role})"
        if foreign := set(message) - _FIELDS[role]:
            yield f"{where} has fields that are none: {sorted(foreign)}"
        yield from _content(message, where)
        if role == "system" and number > 0:
            yield f"{where} does not come first"
        yield from calls.answered(message, where) if role == "tool" else calls.made(message, where)
    if calls.unanswered:
        yield f"nothing answers {sorted(calls.unanswered)}"
    if isinstance(messages[-1], dict) and messages[-1].get("role") not in ("user", "tool"):
        yield f"the last message is of the role {messages[-1].get('role')!r}"


class _CallIds:
    """The ids of the calls in a conversation up to one of its messages."""

    def __init__(self) -> None:
        self.unanswered: set[str] = set()
        self._seen: set[str] = set()

    def answered(self, message: Mapping[str, Any], where: str) -> Iterator[str]:
        """Yield what is wrong with a message as the answer to a call."""
        if message.get("tool_call_id") not in self.unanswered:
            yield f"{where} answers {message.get('tool_call_id')!r}, which waits for no answer"
        self.unanswered.discard(message.get("tool_call_id"))

    def made(self, message: Mapping[str, Any], where: str) -> Iterator[str]:
        """Yield what is wrong with the calls of a message that is no answer, and with those that it leaves open."""
        if self.unanswered:
            yield f"{where} comes before the answers to {sorted(self.unanswered)}"
            self.unanswered = set()
        if message["role"] != "assistant" or "tool_calls" not in message:
            return
        for call in _calls(message["tool_calls"]):
            yield from _call(call, where, self._seen)
            self._seen.add(str(call.get("id")))
            self.unanswered.add(str(call.get("id")))
        if not message["tool_calls"]:
            yield f"{where} has an empty list of calls"


def _content(message: Mapping[str, Any], where: str) -> Iterator[str]:
    content = message.get("content")
    if message["role"] == "assistant" and message.get("tool_calls") and content in (None, ""):
        return
    if message["role"] == "user" and isinstance(content, list) and content:
        for part in content:
            kind = part.get("type") if isinstance(part, dict) else None
            text = part.get("text") if kind == "text" else part.get("image_url", {}).get("url") if kind else None
            if kind not in ("text", "image_url") or not isinstance(text, str) or not text:
                yield f"{where} has a part without content: {str(part)[:80]}"
    elif not isinstance(content, str) or not content:
        yield f"{where} has no content: {content!r}"


def _calls(calls: Any) -> list[dict[str, Any]]:
    return [call if isinstance(call, dict) else {} for call in calls] if isinstance(calls, list) else []


def _call(call: Mapping[str, Any], where: str, seen: set[str]) -> Iterator[str]:
    id, function = call.get("id"), call.get("function")
    if not isinstance(id, str) or not id:
        yield f"{where} has a call with the id {id!r}"
    elif id in seen:
        yield f"{where} has a call with an id that another call has: {id!r}"
    if call.get("type") != "function" or not isinstance(function, dict):
        yield f"{where} has a call that is of no function"
        return
    if not isinstance(function.get("name"), str) or not _NAME.fullmatch(function["name"]):
        yield f"{where} calls {function.get('name')!r}, which is no name"
    arguments = function.get("arguments")
    try:
        given = json.loads(arguments if isinstance(arguments, str) else "", parse_constant=_refuse)
    except ValueError as error:
        yield f"{where} has arguments that are not JSON ({error}): {str(arguments)[:80]}"
        return
    if not isinstance(given, dict):
        yield f"{where} has arguments that are no object: {str(arguments)[:80]}"
    yield from _data(given, f"the arguments of {where}")


def _tools(tools: Any) -> Iterator[str]:
    names: set[str] = set()
    for tool in tools if isinstance(tools, list) else [None]:
        function = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "function" else None
        if not isinstance(function, dict):
            yield f"a tool is no function: {str(tool)[:80]}"
            continue
        name = function.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name in names:
            yield f"a tool is called {name!r}, which is no name or another tool's"
        names.add(str(name))
        parameters = function.get("parameters", {"type": "object"})
        if not isinstance(parameters, dict) or parameters.get("type") != "object":
            yield f"tool {name!r} has parameters that are no schema of an object"
