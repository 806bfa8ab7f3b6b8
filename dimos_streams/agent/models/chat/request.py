"""OpenAI's chat completions: makes requests of our messages, in the style that a server takes."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dimos_streams.agent.models.chat.plain_schemas import plain_parameters
from dimos_streams.agent.models.framing import (
    RULES,
    block,
    result_blocks,
    user_block,
    without_blocks,
    without_control_tokens,
)
from dimos_streams.agent.models.protocol import (
    AssistantMessage,
    ImagePart,
    Message,
    Speaker,
    SystemMessage,
    ToolCall,
    ToolResultMessage,
    ToolSchema,
    UserMessage,
)
from dimos_streams.agent.models.thoughts import NO_THOUGHTS, Thoughts
from dimos_streams.common.json.reading import parse_command
from dimos_streams.common.json.writing import json_text
from dimos_streams.common.names import tool_name

_NO_PARAMETERS = {"type": "object", "properties": {}}
SHORT_ID = re.compile(r"[a-zA-Z0-9]{9}")
"""The form of the ids of calls, for servers that take no other."""
_NOTED = "(noted)"
_UNSAID = " "
"""The thoughts of an answer of which none are known: there are servers that take an empty text for a missing one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatStyle:
    """The parts of the format that a server takes. Most take all."""

    images: bool = True
    user_after_tool: bool = True
    """True if users may follow results; if not, an answer that says nothing comes between them."""
    alternate: bool = False
    """True if neighbouring messages of users are joined, even if their speakers differ."""
    short_ids: bool = False
    """True if ids of calls have to be nine letters and digits."""
    system: bool = True
    """True if standing orders may come as a system message; if not, they come as a user's message."""
    parallel_calls: bool = True
    """True if an answer may have several calls; if not, each of them is an answer of its own, with its result behind
    it."""
    null_content: bool = True
    """True if the content of an answer without text may be null; if not, it is an empty text."""
    signatures: bool = True
    """True if answers and calls have the further fields that came with them."""
    thoughts: bool = False
    """True if each answer has to say what the model thought before it."""


def chat_tools(tools: Sequence[ToolSchema], *, plain: bool = False) -> list[dict[str, Any]]:
    """The tools of a request. They stand in no blocks, and may be described by somebody else's program. With
    ``plain`` their schemas are as Gemini takes them."""
    return [{"type": "function", "function": _function(tool, plain)} for tool in tools]


def _function(tool: ToolSchema, plain: bool) -> dict[str, Any]:
    parameters = _without_blocks({**_NO_PARAMETERS, **tool.parameters})
    described = {"name": tool_name(tool.name), "description": without_blocks(tool.description)}
    sent = plain_parameters(parameters) if plain else parameters
    return {**described, "parameters": sent} if sent else described


def _without_blocks(schema: Any) -> Any:
    """Return a schema of such texts, its names and values too: a call with what is left of those fits no skill."""
    if isinstance(schema, str):
        return without_blocks(schema)
    if isinstance(schema, dict):
        return {without_blocks(name): _without_blocks(part) for name, part in schema.items()}
    return [_without_blocks(part) for part in schema] if isinstance(schema, list | tuple) else schema


def chat_messages(messages: Iterable[Message], style: ChatStyle | None = None) -> list[dict[str, Any]]:
    """The messages of a request, each text in its block (``framing``).

    Only a user's message may carry images, and the results of one answer must not be torn apart: so images of results
    follow the last of them. Neighbouring messages of one speaker become one, except an operator's.
    """
    style = style or ChatStyle()
    built = _Built(style)
    given = list(messages)
    if not any(isinstance(message, SystemMessage) for message in given):
        given.insert(0, SystemMessage(""))
    pictures: list[dict[str, Any]] = []
    for message in given:
        if pictures and not isinstance(message, ToolResultMessage):
            built.add_user("data", pictures)
            pictures = []
        if isinstance(message, SystemMessage):
            built.add_system("\n\n".join(part for part in (message.text, RULES) if part))
        elif isinstance(message, UserMessage):
            shown = message if style.images else replace(message, text=_noting_images(message.text, message.images))
            built.add_user(message.speaker, [_text_part(user_block(shown)), *_images(message.images, style)])
        elif isinstance(message, AssistantMessage):
            built.add_answer(message)
        else:
            result = message if style.images else replace(message, text=_noting_images(message.text, message.images))
            built.add_result(message.tool_call_id, result_blocks(result))
            if style.images and message.images:
                pictures += [_text_part(_source_of_pictures(message)), *_images(message.images, style)]
    if pictures:
        built.add_user("data", pictures)
    return built.finished()


class _Built:
    """The messages of a request while they are put together."""

    def __init__(self, style: ChatStyle) -> None:
        self.messages: list[dict[str, Any]] = []
        self._style = style
        self._speaker: Speaker | None = None
        self._ids = _Ids(short=style.short_ids)
        self._apart: dict[str, dict[str, Any]] = {}
        """Answers with one call each that wait for its result, by the call's id as it is sent."""

    def add_system(self, text: str) -> None:
        role = "system" if self._style.system else "user"
        self.messages.append({"role": role, "content": [_text_part(text)]})

    def add_user(self, speaker: Speaker, parts: list[dict[str, Any]]) -> None:
        """Add a user's message. An operator's input is joined with nobody else's, nor with other input, unless a
        server insists."""
        last = self.messages[-1]["role"] if self.messages else ""
        joins = speaker == self._speaker and speaker != "operator"
        if last == "user" and (joins or self._style.alternate):
            self.messages[-1]["content"] += parts
        else:
            if last == "tool" and not self._style.user_after_tool:
                self.messages.append(self._answer(_NOTED))
            self.messages.append({"role": "user", "content": list(parts)})
        self._speaker = speaker

    def add_answer(self, message: AssistantMessage) -> None:
        calls = [self._call(call) for call in message.tool_calls]
        text = without_control_tokens(message.text)
        if not calls:
            self.messages.append(self._answer(text or _NOTED, message.thoughts))
        elif self._style.parallel_calls or len(calls) == 1:
            self.messages.append(self._answer(text, message.thoughts, calls))
        else:
            for call, said in zip(calls, itertools.chain([text], itertools.repeat("")), strict=False):
                self._apart[call["id"]] = self._answer(said, message.thoughts, [call])

    def add_result(self, tool_call_id: str, content: str) -> None:
        id = self._ids.of(tool_call_id)
        if id in self._apart:
            self.messages.append(self._apart.pop(id))
        self.messages.append({"role": "tool", "tool_call_id": id, "content": without_control_tokens(content)})

    def finished(self) -> list[dict[str, Any]]:
        """Return the messages. Content that is only text is sent as text, which every server takes."""
        for entry in self.messages:
            if isinstance(entry["content"], list) and all(part["type"] == "text" for part in entry["content"]):
                entry["content"] = "\n\n".join(part["text"] for part in entry["content"])
        return self.messages

    def _answer(
        self, text: str, thoughts: Thoughts = NO_THOUGHTS, calls: Sequence[dict[str, Any]] = ()
    ) -> dict[str, Any]:
        """An answer of the past. Servers that want its thoughts take no null beside them."""
        null = self._style.null_content and not self._style.thoughts
        answer: dict[str, Any] = {"role": "assistant", "content": text or (None if null else "")}
        if self._style.thoughts:
            answer["reasoning_content"] = without_control_tokens(thoughts.text) or _UNSAID
        if self._style.signatures:
            answer.update((field, list(parts)) for field, parts in thoughts.details.items())
        return {**answer, "tool_calls": list(calls)} if calls else answer

    def _call(self, call: ToolCall) -> dict[str, Any]:
        """A call of the past, repaired: servers refuse a whole conversation for one name or arguments that are
        damaged."""
        name = tool_name(re.sub(r"[^a-zA-Z0-9_-]", "_", call.name) or "unknown")
        return {
            **((call.extra or {}) if self._style.signatures else {}),
            "id": self._ids.new(call.id),
            "type": "function",
            "function": {"name": name, "arguments": _sent_arguments(call.arguments)},
        }


class _Ids:
    """Ids of calls as they are sent: each once in a conversation, though servers begin to count anew in each answer.

    The same conversation has the same ids, however it goes on.
    """

    def __init__(self, *, short: bool) -> None:
        self._short = short
        self._taken: set[str] = set()
        self._newest: dict[str, str] = {}

    def new(self, given: str) -> str:
        """Return the id of a further call that was given this one."""
        names = itertools.chain([given], (f"{given}.{number}" for number in itertools.count(2)))
        id = next(id for id in map(self._form, names) if id not in self._taken)
        self._taken.add(id)
        self._newest[given] = id
        return id

    def of(self, given: str) -> str:
        """Return the id of the newest call that was given this one."""
        return self._newest.get(given, given)

    def _form(self, id: str) -> str:
        if not self._short or SHORT_ID.fullmatch(id):
            return id
        return hashlib.sha256(id.encode()).hexdigest()[:9]


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": without_control_tokens(text)}


def _images(given: Sequence[ImagePart], style: ChatStyle) -> list[dict[str, Any]]:
    return [
        {
            "type": "image_url",
            "image_url": {"url": f"data:{image.media_type};base64,{base64.b64encode(image.data).decode()}"},
        }
        for image in given
        if style.images
    ]


def _source_of_pictures(message: ToolResultMessage) -> str:
    call = message.event.call_id if message.event else ""
    text = f"Pictures of the result of {message.name} ({message.tool_call_id}):"
    return block("data", text, skill=message.name, call=call, event="pictures")


def _noting_images(text: str, given: Sequence[ImagePart]) -> str:
    return f"{text}\n(Images that you can't see: {len(given)}.)" if given else text


def _sent_arguments(text: str) -> str:
    """The arguments of a call, if they are an object. Servers put what they have read of them into a template, so a
    control token may not stand behind an escape of JSON either."""
    try:
        values = parse_command(text)
    except ValueError:
        return "{}"
    if not isinstance(values, dict):
        return "{}"
    read = json_text(values)
    sent = without_control_tokens(read)
    return text if sent == read else sent
