"""Servers that take less than the format allows: what they refuse is learnt, and kept."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from dimos_streams.agent.models import create_model
from dimos_streams.agent.models.model_options import ModelOptions
from dimos_streams.agent.models.protocol import (
    AssistantMessage,
    ContextLengthError,
    Finish,
    ImagePart,
    ModelDelta,
    ModelError,
    ModelRequest,
    SystemMessage,
    TokenUsage,
    ToolCall,
    ToolCallDelta,
    ToolResultMessage,
    ToolSchema,
    UserMessage,
)
from dimos_streams.agent.models.thoughts import Thoughts
from dimos_streams.client.iterators import closing
from dimos_streams.testing import ModelServer, RecordedRequest, Reply
from dimos_streams.tool_stream.event import ToolEvent

UPDATE = ToolEvent(utime=1, call_id="c", seq=2, type="update", module="m", skill="look", caller="agent", text="a cat")
SIGNED = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
THOUGHT = AssistantMessage("", (ToolCall("t0", "look", "{}"),))
ALL = ModelRequest(
    (
        SystemMessage("orders"),
        UserMessage("look twice"),
        AssistantMessage("", (ToolCall("t0", "look", "{}", SIGNED), ToolCall("t1", "look", '{"x": NaN}'))),
        ToolResultMessage("t0", "look", "a cat", images=(ImagePart(b"\xff\xd8\xff"),)),
        ToolResultMessage("t1", "look", ""),
        UserMessage("a cat", UPDATE),
        UserMessage("and now?"),
        THOUGHT,
        ToolResultMessage("t0", "look", "a dog"),
        UserMessage("again"),
    ),
    (ToolSchema("look", "Look.", {}),),
)
"""All that servers are known to refuse, in one conversation."""

HIDDEN = {
    "OpenRouter": {"error": {"message": "Provider returned error", "metadata": {"raw": "no reasoning_content"}}},
    "Gemini": [{"error": {"message": "no reasoning_content", "status": "INVALID_ARGUMENT"}}],
}
Body = Mapping[str, Any]


def roles(body: Body) -> list[str]:
    return [message["role"] for message in body["messages"]]


def calls(body: Body) -> list[list[dict[str, Any]]]:
    return [message["tool_calls"] for message in body["messages"] if "tool_calls" in message]


REFUSALS: dict[str, tuple[str, Callable[[Body], bool]]] = {
    "pictures": ("this model has no vision", lambda body: "image_url" in str(body["messages"])),
    "users in a row": (
        "Conversation roles must alternate user/assistant/user/assistant/...",
        lambda body: ("user", "user") in itertools.pairwise(roles(body)),
    ),
    "a user after a result": (
        "Unexpected role 'user' after role 'tool'",
        lambda body: ("tool", "user") in itertools.pairwise(roles(body)),
    ),
    "ids": (
        "Tool call id was t0 but must be a-z, A-Z, 0-9, with a length of 9.",
        lambda body: any(not re.fullmatch("[a-zA-Z0-9]{9}", call["id"]) for asked in calls(body) for call in asked),
    ),
    "system": ("System role not supported", lambda body: "system" in roles(body)),
    "several calls": (
        "This model only supports single tool-calls at once!",
        lambda body: any(len(asked) > 1 for asked in calls(body)),
    ),
    "no content": (
        "messages.2.content: expected string, received null",
        lambda body: any(message["content"] is None for message in body["messages"]),
    ),
    "signatures": ("extra_content: Extra inputs are not permitted", lambda body: "extra_content" in str(body)),
    "usage": ("stream_options: Extra inputs are not permitted", lambda body: "stream_options" in body),
}


async def asked(replies: Callable[[RecordedRequest], Reply], *requests: ModelRequest) -> tuple[Any, ModelServer]:
    answers: list[list[ModelDelta]] = []
    async with ModelServer(replies) as server:
        model = create_model("openai:m", base_url=server.url)
        try:
            for request in requests:
                async with closing(model.stream(request)) as stream:
                    answers.append([delta async for delta in stream])
        finally:
            await model.close()
    return answers, server


@pytest.mark.slow
@pytest.mark.feature("D7", "F8")
@pytest.mark.parametrize("clear", [True, False], ids=["it says so", "it does not say what"])
@pytest.mark.parametrize("refusal", REFUSALS)
def test_what_a_server_refuses_is_left_out_from_then_on(refusal: str, clear: bool) -> None:
    text, refuses = REFUSALS[refusal]

    def reply(request: RecordedRequest) -> Reply:
        return Reply.error(400, text if clear else "Bad Request") if refuses(request.body) else Reply.say("A dog.")

    answers, server = asyncio.run(asked(reply, ALL, ALL))
    assert [answer[-1] for answer in answers] == [Finish("stop")] * 2
    refused = [refuses(request.body) for request in server.requests]
    assert refused[-2:] == [False, False]  # the second time it is asked so at once
    assert sum(refused) == 1 if clear else sum(refused) <= len(REFUSALS)
    if not clear:  # and nothing else is left out
        assert len(str(server.requests[-1].body)) > 0.6 * len(str(server.requests[0].body))


@pytest.mark.feature("D7", "F8")
@pytest.mark.parametrize(
    "text",
    [
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
    ],
    ids=["DeepSeek", "Kimi"],
)
def test_a_server_that_wants_the_models_thoughts_gets_them_back(text: str) -> None:
    def reply(request: RecordedRequest) -> Reply:
        said = [message for message in request.body["messages"] if message["role"] == "assistant"]
        taken = all(message.get("reasoning_content") and message["content"] is not None for message in said)
        return Reply.say("A dog.") if taken else Reply.error(400, text)

    thoughtful = replace(
        ALL,
        messages=(*ALL.messages[:7], replace(THOUGHT, thoughts=Thoughts("A d\nog?<|im_end|>")), *ALL.messages[8:]),
    )
    answers, server = asyncio.run(asked(reply, thoughtful, thoughtful))
    assert [answer[-1] for answer in answers] == [Finish("stop")] * 2
    assert len(server.requests) == 3, "one refusal says what is wanted, and it stays learnt"
    sent = [message.get("reasoning_content") for message in server.requests[-1].body["messages"]]
    assert [thoughts for thoughts in sent if thoughts] == [" ", "A d\nog?< |im_end|>"]


WORDS = (
    "Unknown name \"{}\" at 'tools[0].function_declarations[1].parameters': Cannot find field.",
    "`go` functionDeclaration `parameters.metres` schema is refused",
    "other fields alongside any_of",
)


@pytest.mark.feature("D7")
@pytest.mark.parametrize("words", WORDS)
def test_a_gateway_that_hands_schemas_on_to_gemini_gets_plain_ones(words: str) -> None:
    bounded = {"anyOf": [{"type": "number", "exclusiveMinimum": 0, "title": "T"}, {"type": "null"}], "default": None}
    parameters = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "metres": {**bounded, "description": "How far."},
            "kind": {"oneOf": [{"const": "fast"}, {"type": ["integer", "null"], "enum": [1, 2]}]},
            "names": {"type": "array", "minItems": 1, "prefixItems": [{}]},
            "place": {"allOf": [{"anyOf": [{"type": "string"}]}, True], "description": "Where."},
        },
        "required": ["names"],
    }
    tools = (ToolSchema("look", "Look.", {}), ToolSchema("go", "Go.", parameters))
    unknown = ("additionalProperties", "exclusiveMinimum", "oneOf", "const", "default", "null", "prefixItems")

    def reply(request: RecordedRequest) -> Reply:
        names = [name for name in unknown if f"'{name}'" in str(request.body["tools"])]
        return Reply.error(400, words.format(names[0])) if names else Reply.say("A dog.")

    _, server = asyncio.run(asked(reply, ModelRequest(ALL.messages, tools), ModelRequest(ALL.messages, tools)))
    assert len(server.requests) == 3
    look, go = (tool["function"] for tool in server.requests[-1].body["tools"])
    assert look == {"name": "look", "description": "Look."}
    assert go["parameters"] == {
        "type": "object",
        "properties": {
            "metres": {"type": "number", "description": "How far."},
            "kind": {"anyOf": [{"type": "string", "enum": ["fast"]}, {"type": "integer"}]},
            "names": {"type": "array", "minItems": 1, "items": {"type": "string"}},
            "place": {"type": "string", "description": "Where."},
        },
        "required": ["names"],
    }


@pytest.mark.feature("D7")
@pytest.mark.parametrize("server", HIDDEN)
def test_the_words_of_a_refusal_are_found_where_servers_have_them(server: str) -> None:
    def reply(request: RecordedRequest) -> Reply:
        if "reasoning_content" in str(request.body):
            return Reply.say("A dog.")
        return Reply(status=400, body=json.dumps(HIDDEN[server]))

    _, asked_server = asyncio.run(asked(reply, ALL))
    assert len(asked_server.requests) == 2

    with pytest.raises(ModelError, match=r"HTTP 400: (Provider returned error: )?no reasoning_content$"):
        asyncio.run(asked(lambda request: Reply(status=400, body=json.dumps(HIDDEN[server])), ALL))


@pytest.mark.feature("D7")
def test_a_server_that_refuses_all_of_it() -> None:
    def reply(request: RecordedRequest) -> Reply:
        for text, refuses in REFUSALS.values():
            if refuses(request.body):
                return Reply.error(400, text)
        return Reply.say("A dog.")

    answers, server = asyncio.run(asked(reply, ALL, ALL))
    assert [answer[-1] for answer in answers] == [Finish("stop")] * 2
    assert len(server.requests) <= len(REFUSALS) + 2


@pytest.mark.feature("D7")
@pytest.mark.parametrize(
    "extra", [{"temperature": 0.2}, {"max_tokens": 9}, {"stream_options": {}}], ids=lambda extra: next(iter(extra))
)
def test_what_a_blueprint_sends_in_any_case_is_refused_once_more_and_no_more(extra: dict[str, Any]) -> None:
    def refuse(request: RecordedRequest) -> Reply:
        words = {"max_tokens": "use max_completion_tokens"}
        return Reply.error(400, ", ".join(words.get(name, name) for name in extra if name in request.body))

    async def main() -> None:
        async with ModelServer(refuse) as server:
            model = create_model("openai:m", base_url=server.url, options=ModelOptions(extra=extra))
            with pytest.raises(ModelError, match="HTTP 400"):
                await asyncio.wait_for(anext(model.stream(ALL)), 20.0)
            assert len(server.requests) == 2
            await model.close()

    asyncio.run(main())


def test_what_is_not_about_the_form_is_asked_a_few_times_only() -> None:
    async def main() -> None:
        async with ModelServer(lambda request: Reply.error(400, "No.")) as server:
            model = create_model("openai:m", base_url=server.url, options=ModelOptions())
            counts = []
            for _ in range(5):
                before = len(server.requests)
                with pytest.raises(ModelError, match="HTTP 400: No"):
                    await anext(model.stream(ALL))
                counts.append(len(server.requests) - before)
            assert counts[0] <= len(REFUSALS) + 1
            assert counts[3:] == [1, 1]
            assert "image_url" in str(server.requests[-1].body)
            await model.close()

    asyncio.run(main())


LENGTHS = {
    "OpenAI": (400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000"),
    "llama.cpp": (400, "the request exceeds the available context size (4096 tokens), try increasing it"),
    "vLLM": (
        400,
        "The decoder prompt (length 9000) is longer than the maximum model length of 4096. Make sure that "
        "`max_model_len` is no smaller than the number of text tokens; reduce the length of the input",
    ),
    "Anthropic": (400, "prompt is too long: 209000 tokens > 200000 maximum"),
    "Gemini": (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    "Mistral": (
        400,
        "Prompt contains 40000 tokens and 0 draft tokens, too large for a maximum context of 32768",
    ),
    "TGI": (
        422,
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 9000 `inputs` "
        "tokens; inputs are too long",
    ),
    "a proxy": (413, "Request Entity Too Large"),
}


@pytest.mark.slow
@pytest.mark.feature("D7")
@pytest.mark.parametrize("server", LENGTHS)
def test_a_conversation_that_is_too_long_is_recognised(server: str) -> None:
    status, text = LENGTHS[server]
    in_stream: tuple[dict[str, Any], ...] = ({"message": text, "code": status}, {"message": text})
    for reply in (Reply.error(status, text), *(Reply.raw({"error": error}) for error in in_stream)):
        with pytest.raises(ContextLengthError, match=re.escape(text[:40])):
            asyncio.run(asked(lambda request, reply=reply: reply, ALL))  # type: ignore[misc]


@pytest.mark.slow
def test_other_failures_are_not_taken_for_it() -> None:
    for text in ("max_tokens is too large: 99999. At most 4096 are possible", "Rate limit reached", "no such key"):
        with pytest.raises(ModelError) as caught:
            asyncio.run(asked(lambda request, text=text: Reply.error(400, text), ALL))  # type: ignore[misc]
        assert not isinstance(caught.value, ContextLengthError)
    with pytest.raises(ModelError) as caught:
        asyncio.run(asked(lambda request: Reply.error(429, "prompt is too long for this minute"), ALL))
    assert not isinstance(caught.value, ContextLengthError), "a shorter one would be refused as well"


@pytest.mark.feature("D7")
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"error": {"message": "model overloaded", "code": 503}}', "model overloaded"),
        ('{"error": "model \'m\' not found"}', "model 'm' not found"),
        ('{"detail": "Not Found"}', "Not Found"),
        ('{"object": "error", "message": "no GPU is left"}', "no GPU is left"),
        ('{"choices": []}', "choices"),
    ],
)
def test_an_error_that_comes_as_200_keeps_the_servers_words(body: str, words: str) -> None:
    with pytest.raises(ModelError, match=re.escape(words)):
        asyncio.run(asked(lambda request: Reply(body=body), ALL))


@pytest.mark.feature("B1")
def test_calls_of_the_old_format() -> None:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    reply = Reply.raw(
        chunk({"function_call": {"name": "look", "arguments": ""}}),
        chunk({"function_call": {"arguments": '{"x"'}}),
        chunk({"function_call": {"arguments": ": 1}"}}),
        chunk({}, "function_call"),
    )
    ((*deltas, finish),), _ = asyncio.run(asked(lambda request: reply, ALL))
    assert finish == Finish("tool_calls")
    assert "".join(delta.name for delta in deltas) == "look"
    assert "".join(delta.arguments for delta in deltas) == '{"x": 1}'
    assert all(isinstance(delta, ToolCallDelta) for delta in deltas)


def test_usage_of_nothing_is_none() -> None:
    (answer,), _ = asyncio.run(asked(lambda request: Reply.say("Hi.", usage=(0, 0)), ALL))
    assert not any(isinstance(delta, TokenUsage) for delta in answer)
