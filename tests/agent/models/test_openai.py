"""The openai SDK against a scripted server, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Callable
from typing import Any

import pytest

from dimos_streams.agent.models import check_model, create_model, guarded, openai_chat
from dimos_streams.agent.models.chat.request import chat_tools
from dimos_streams.agent.models.framing import RULES, block
from dimos_streams.agent.models.model_options import ModelOptions
from dimos_streams.agent.models.protocol import (
    AssistantMessage,
    Cut,
    Finish,
    ImagePart,
    Message,
    Model,
    ModelDelta,
    ModelError,
    ModelRequest,
    SystemMessage,
    TextDelta,
    TokenUsage,
    ToolCall,
    ToolResultMessage,
    ToolSchema,
    UserMessage,
)
from dimos_streams.client.iterators import closing
from dimos_streams.errors import UserError
from dimos_streams.testing import ModelServer, RecordedRequest, Reply
from tests.agent.models.blocks import parse_blocks
from tests.agent.models.golden_cases import CASES, put_together
from tests.helpers import run_virtual, until

MOVED = block("data", "moved", skill="move", event="result")
NOT_RUN = block("data", "not run", skill="mo ve", event="error")
PICTURES = block("data", "Pictures of the result of observe (a):", skill="observe", event="pictures")
_DEEP = 900 if sys.version_info < (3, 12) else 5000
"""So deep that Python's JSON still reads it, and whoever walks through it comes to the limit of recursion."""
HELLO = ModelRequest((UserMessage("hello"),))
STREAM = {"content-type": "text/event-stream"}
JPEG = ImagePart(b"\xff\xd8\xff")
JPEG_URL = {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,/9j/"}}


async def heard(model: Model, *messages: Message) -> list[ModelDelta]:
    request = ModelRequest(messages) if messages else HELLO
    async with closing(model.stream(request)) as stream:
        return [delta async for delta in stream]


def served(
    replies: list[Reply] | Callable[[RecordedRequest], Reply], *asked: tuple[Message, ...], **options: Any
) -> tuple[list[list[ModelDelta] | ModelError], list[RecordedRequest]]:
    """The results of each request, and the requests that the server had."""

    async def main() -> tuple[list[list[ModelDelta] | ModelError], list[RecordedRequest]]:
        got: list[list[ModelDelta] | ModelError] = []
        async with ModelServer(replies) as server:
            model = create_model("openai:m", base_url=server.url, options=ModelOptions(**options))
            for messages in asked or [()]:
                try:
                    got.append(await heard(model, *messages))
                except ModelError as error:
                    got.append(error)
            await model.close()
        return got, server.requests

    return asyncio.run(main())


def failure(reply: Reply) -> ModelError:
    ((error,), _) = served([reply])
    assert isinstance(error, ModelError)
    return error


@pytest.mark.feature("B1", "F8")
def test_what_known_servers_send_over_http() -> None:
    async def main() -> None:
        async with ModelServer() as server:
            model = create_model("openai:m", base_url=server.url)
            guard = guarded(model, name="m", options=ModelOptions(), rng=random.Random(1))
            for name, case in CASES.items():
                chunks, answer = case["chunks"], case["answer"]
                if name == "whole-answer":
                    server.add(Reply(body=json.dumps(chunks[0])))
                elif answer["finish"] is None:
                    server.add(Reply.raw(*chunks).but(cut_after=len(chunks)))
                else:
                    server.add(Reply.raw(*chunks))
                assert put_together(await heard(guard)) == answer, name
            assert len(server.requests) == len(CASES)
            await guard.close()

    asyncio.run(main())


def test_the_arguments_of_each_tool_are_an_object() -> None:
    described = {"properties": {"metres": {"type": "number"}}, "required": ["metres"]}
    (tool,) = chat_tools([ToolSchema("move", "", described)])
    assert tool["function"]["parameters"] == {"type": "object", **described}


@pytest.mark.feature("F8")
def test_a_request() -> None:
    async def main() -> RecordedRequest:
        async with ModelServer([Reply.say("Moved.")]) as server:
            options = ModelOptions(temperature=0.2, max_tokens=99, extra={"top_p": 0.9})
            model = create_model("openai:m", base_url=server.url, options=options)
            parameters = {"type": "object", "properties": {"distance_m": {"type": "number"}}}
            messages = (
                SystemMessage("You control a robot."),
                UserMessage("move 1"),
                UserMessage("and 2"),
                AssistantMessage("", (ToolCall("a", "move", '{"distance_m": 1}', {"extra_content": {"x": 1}}),)),
                ToolResultMessage("a", "move", "moved"),
                AssistantMessage("Moved."),
                UserMessage("more"),
            )
            request = ModelRequest(messages, (ToolSchema("move", "Move.", parameters), ToolSchema("stop", "", {})))
            got = [delta async for delta in model.stream(request)]
            assert got == [TextDelta("Moved."), TokenUsage(10, 5), Finish("stop")]
            await model.close()
            return server.requests[0]

    request = asyncio.run(main())
    assert request.path == "/v1/chat/completions"
    call = {"id": "a", "type": "function", "function": {"name": "move", "arguments": '{"distance_m": 1}'}}
    assert request.body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": f"You control a robot.\n\n{RULES}"},
            {"role": "user", "content": block("operator", "move 1")},
            {"role": "user", "content": block("operator", "and 2")},
            {"role": "assistant", "content": None, "tool_calls": [{"extra_content": {"x": 1}, **call}]},
            {"role": "tool", "tool_call_id": "a", "content": MOVED},
            {"role": "assistant", "content": "Moved."},
            {"role": "user", "content": block("operator", "more")},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "move",
                    "description": "Move.",
                    "parameters": {"type": "object", "properties": {"distance_m": {"type": "number"}}},
                },
            },
            {
                "type": "function",
                "function": {
                    "name": "stop",
                    "description": "",
                    "parameters": {"type": "object", "properties": {}},
                },
            },
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.2,
        "max_tokens": 99,
        "top_p": 0.9,
    }


LOOKED: tuple[Message, ...] = (
    UserMessage("what do you see?"),
    AssistantMessage("", (ToolCall("a", "observe", ""), ToolCall("b", "mo ve", '{"x": '))),
    ToolResultMessage("a", "observe", "a room", images=(JPEG,)),
    ToolResultMessage("b", "mo ve", "not run", is_error=True),
)


def test_images_reach_models_that_can_see() -> None:
    _, (request,) = served([Reply.say("A room.")], LOOKED)
    assert request.body["messages"][2:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "observe", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "mo_ve", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": block("data", "a room", skill="observe", event="result")},
        {"role": "tool", "tool_call_id": "b", "content": NOT_RUN},
        {"role": "user", "content": [{"type": "text", "text": PICTURES}, JPEG_URL]},
    ]
    _, (request,) = served([Reply.say("A room.")], (UserMessage("what is this?", images=(JPEG,)),))
    question = {"type": "text", "text": block("operator", "what is this?")}
    assert request.body["messages"][1]["content"] == [question, JPEG_URL]


def test_others_are_informed_that_there_are_some() -> None:
    _, (request,) = served([Reply.say("A room.")], LOOKED, vision=False)
    room = block("data", "a room\n(Images that you can't see: 1.)", skill="observe", event="result")
    assert [message["content"] for message in request.body["messages"][3:]] == [room, NOT_RUN]


@pytest.mark.parametrize(
    "refusal",
    [
        (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
        (400, "m is not a multimodal model"),
        (404, "No endpoints found that support image input"),
        (422, "unknown variant `image_url`, expected `text`"),
    ],
)
def test_a_server_that_refuses_images_gets_none_any_more(refusal: tuple[int, str]) -> None:
    got, requests = served([Reply.error(*refusal), Reply.say("A room."), Reply.say("Still.")], LOOKED, LOOKED)
    assert [put_together(deltas)["text"] for deltas in got if isinstance(deltas, list)] == ["A room.", "Still."]
    assert ["image_url" in json.dumps(request.body) for request in requests] == [True, False, False]
    got, requests = served([Reply.error(*refusal)], LOOKED, vision=True)
    assert isinstance(got[0], ModelError)


def test_it_learns_how_a_server_wants_to_be_asked() -> None:
    refusals = [
        Reply.error(422, "extra_forbidden: stream_options.include_usage"),
        Reply.error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        Reply.error(400, "Unexpected role 'user' after role 'tool'"),
    ]
    got, requests = served(
        [*refusals, Reply.say("Hi."), Reply.say("Hi.")], (*LOOKED, UserMessage("and?")), (), max_tokens=9
    )
    assert all(isinstance(deltas, list) for deltas in got)
    for request in requests[3:]:
        assert "stream_options" not in request.body
        assert (request.body.get("max_tokens"), request.body["max_completion_tokens"]) == (None, 9)
    assert [message["role"] for message in requests[3].body["messages"]] == [
        *("system", "user", "assistant", "tool", "tool", "assistant", "user", "user"),
    ]
    # What it can't learn from, it passes on, when it has tried what there is to try.
    got, requests = served([Reply.error(400, "stream_options")] * 4)
    assert isinstance(got[0], ModelError)
    assert len(requests) == 3


@pytest.mark.parametrize(
    "during", [Reply.error(429, "slow down"), Reply.error(400, "system role not supported")], ids=["busy", "clear"]
)
def test_what_is_left_out_on_trial_is_sent_again_if_the_trial_ends_otherwise(during: Reply) -> None:
    replies = [Reply.error(400, "Bad Request"), during, Reply.say("A room."), Reply.say("Still.")]
    _, requests = served(replies, LOOKED, LOOKED)
    assert ["stream_options" in request.body for request in requests[:3]] == [True, False, True]


@pytest.mark.feature("D7")
@pytest.mark.parametrize(
    ("reply", "words", "retryable", "status"),
    [
        (Reply.error(429, "slow down", retry_after=2), "HTTP 429: slow down", True, 429),
        (Reply.error(429, "spent", code="insufficient_quota"), "HTTP 429: spent", False, 429),
        (Reply.error(500), "HTTP 500", True, 500),
        (Reply.error(401, "no such key"), "HTTP 401: no such key", False, 401),
        (Reply.error(404), r"HTTP 404 \(base URLs mostly end in /v1\)", False, 404),
        (Reply(status=503, body="<html>busy</html>"), "HTTP 503: <html>busy", True, 503),
        (Reply(body="<html>", headers={"content-type": "text/html"}), "answers with a web page", False, None),
        (Reply(body="{not JSON"), "is not JSON", True, None),
        (Reply.raw("{not JSON"), "is not JSON", True, None),
        (Reply.raw("[" * 20_000), "nested too deeply", True, None),
        (Reply.raw('{"a": ' + "[" * _DEEP + "]" * _DEEP + "}"), "nested too deeply", True, None),
        (Reply(body="[" * 20_000), "nested too deeply", True, None),
        (Reply.raw("[1]"), r"sent '\[1\]', not an object", True, None),
        (Reply.raw({"error": {"message": "overloaded", "code": 529}}), "overloaded", True, 529),
        (Reply.raw({"error": {"message": "too long", "code": "invalid_request_error"}}), "too long", False, None),
        (Reply.raw({"object": "error", "message": "the engine died", "code": 500}), "the engine died", True, 500),
        (Reply.raw({"choices": [], "x_groq": {"error": "no such tool"}}), "no such tool", True, None),
        (Reply(body='\n{"error": "no slot"}\n\ndata: [DONE]\n\n', headers=STREAM), "no slot", True, None),
        (Reply(body='{"error": {"message": "overloaded", "code": 529}}', headers=STREAM), "overloaded", True, 529),
        (Reply(body='"no slot"'), "sent 'no slot', not an object", True, None),
        (Reply(status=503, body='{"detail": [{"given": null}]}'), 'HTTP 503: .*"given": null', True, 503),
        (Reply.say("hello").but(cut_after=0), "the connection failed", True, None),
    ],
)
def test_failures_say_what_and_whether_they_may_pass(
    reply: Reply, words: str, retryable: bool, status: int | None
) -> None:
    error = failure(reply)
    assert error.args
    with pytest.raises(ModelError, match=words):
        raise error
    assert str(error).startswith("model 'm' at http://127.0.0.1:")
    assert (error.retryable, error.status) == (retryable, status)
    assert error.retry_after_s == (2 if "slow down" in words else None)


@pytest.mark.slow
@pytest.mark.parametrize("status", [200, 500])
def test_a_connection_that_breaks_in_a_whole_body(status: int) -> None:
    async def main() -> None:
        async with ModelServer([Reply(status=status, body="{}", headers={"content-length": "100"})]) as server:
            model = create_model("openai:m", base_url=server.url)
            listening = asyncio.ensure_future(heard(model))
            await until(lambda: server.requests)
            await server.requests[0].over.wait()
            await server.stop()
            with pytest.raises(ModelError, match="the connection failed") as caught:
                await listening
            assert caught.value.retryable
            await model.close()

    asyncio.run(main())


def test_nobody_listens(free_port: int) -> None:
    async def main() -> None:
        model = create_model("openai:m", base_url=f"http://127.0.0.1:{free_port}/v1")
        with pytest.raises(ModelError, match="the connection failed") as caught:
            await heard(model)
        assert caught.value.retryable
        await model.close()

    asyncio.run(main())


@pytest.mark.feature("D7")
def test_failures_and_then_an_answer_over_http() -> None:
    bad = [Reply.error(500), Reply.say("hello").but(cut_after=1), Reply.error(429, retry_after=0), Reply.raw("{")]

    async def main() -> None:
        async with ModelServer([*bad, Reply.say("hello")]) as server:
            retries: list[float] = []
            guard = guarded(
                create_model("openai:m", base_url=server.url),
                name="m",
                options=ModelOptions(first_wait_s=0.01),
                rng=random.Random(1),
                on_retry=lambda retry: retries.append(retry.delay_s),
            )
            assert put_together(await heard(guard))["text"] == "hello"
            assert len(retries) == 4
            server.add(Reply.calls(("move", {"distance_m": 1})).but(cut_after=3))
            *deltas, cut = await heard(guard)
            assert isinstance(cut, Cut)
            (call,) = put_together(deltas)["calls"]
            assert (call["name"], call["damage"]) == ("move", "truncated")
            await guard.close()

    asyncio.run(main())


@pytest.mark.parametrize("how", ["cancel", "break", "silence"])
def test_leaving_closes_the_socket(how: str) -> None:
    async def main() -> None:
        async with ModelServer([Reply.say("hello", piece=1).but(silent_after=3)]) as server:
            options = ModelOptions(silence_s=1 if how == "silence" else 30)
            model = create_model("openai:m", base_url=server.url)
            guard = guarded(model, name="m", options=options, rng=random.Random(1))
            first = asyncio.Event()

            async def listen() -> None:
                async with closing(guard.stream(HELLO)) as stream:
                    async for _ in stream:
                        first.set()
                        if how == "break":
                            break

            task = asyncio.ensure_future(listen())
            await first.wait()
            if how == "cancel":
                task.cancel()
            async with asyncio.timeout(15):  # half of what the server may be silent for by itself
                await asyncio.gather(task, return_exceptions=True)
                await server.requests[0].over.wait()
            assert server.requests[0].abandoned
            await guard.close()

    asyncio.run(main())


@pytest.mark.slow
@pytest.mark.feature("B1")
def test_a_megabyte_of_arguments() -> None:
    arguments = {"text": '}{"\\' * 250_000}
    ((deltas,), _) = served([Reply.calls(("move", arguments), piece=4096)])
    assert isinstance(deltas, list)
    assert put_together(deltas)["calls"][0]["arguments"] == arguments


def test_a_server_of_the_private_network_is_asked_without_the_environments_proxy(
    monkeypatch: pytest.MonkeyPatch, free_port: int
) -> None:
    """The proxy would read the key."""
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port}")
    monkeypatch.setenv("all_proxy", "ftp://eve:pa55word@proxy.example")
    ((deltas,), _) = served([Reply.say("hello", usage=None)])
    assert deltas == [TextDelta("hello"), Finish("stop")]
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with pytest.raises(UserError, match="can't be asked by the proxy of the environment: Unknown scheme") as caught:
        create_model("openai:m", base_url="https://api.example.com/v1")
    assert "pa55word" not in str(caught.value)


@pytest.mark.parametrize("begin", ["", "\n: ping\n\n", "event: message\n"])
def test_a_stream_that_is_called_json_is_a_stream(begin: str) -> None:
    events = (f"data: {json.dumps(chunk)}\n\n" for chunk in Reply.say("hello", usage=None).chunks)
    ((deltas,), _) = served([Reply(body=begin + "".join(events), headers={"content-type": "application/json"})])
    assert deltas == [TextDelta("hello"), Finish("stop")]


@pytest.mark.parametrize(
    ("reasons", "counts"),
    [
        (("stop", "content_filter"), "content_filter"),
        (("SAFETY", "stop"), "content_filter"),
        (("tool_calls", "length"), "length"),
        (("length", "error"), "error"),
        (("tool_calls", "stop"), "tool_calls"),
    ],
)
def test_of_two_finish_reasons_the_one_counts_that_says_what_the_answer_lacks(
    reasons: tuple[str, str], counts: str
) -> None:
    ((deltas,), _) = served([Reply.raw(*({"choices": [{"finish_reason": reason}]} for reason in reasons))])
    assert deltas == [Finish(counts)]


def test_a_server_that_does_not_hang_up_after_the_finish(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_chat, "_AFTER_FINISH_S", 0.1)
    begun = Reply.say("hello", usage=None)
    ((deltas,), _) = served([begun.but(silent_after=len(begun.chunks))])
    assert deltas == [TextDelta("hello"), Finish("stop")]


def test_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    for url in (None, "https://api.example.com/v1"):
        with pytest.raises(UserError, match="needs a key: set OPENAI_API_KEY"):
            create_model("openai:m", base_url=url)
    check_model("openai:m")  # it may get its key later
    with pytest.raises(UserError, match="there is no model 'openai:'"):
        check_model("openai:")
    for url in ("http://localhost:11434/v1", "http://192.168.1.7:8000/v1", "http://gpu.local/v1", "http://[::1]/v1"):
        create_model("openai:m", base_url=url)
    for url in ("localhost:11434", "ftp://localhost/v1", "http://[", "http:///v1"):
        with pytest.raises(UserError, match="server's address"):
            create_model("openai:m", base_url=url)
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    create_model("openai:m")
    _, (request,) = served([Reply.say("hello")])
    assert request.headers["authorization"] == "Bearer secret"


@pytest.mark.parametrize("piece", [1, 4, 100])
def test_a_key_that_comes_back_is_redacted_though_it_comes_in_pieces(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-pl4nted")
    refusal = Reply.error(401, "x" * 495 + "sk-pl4nted")
    ((answer,), _) = served([Reply.say("You sent Bearer sk-pl4nted, sk", piece=piece)])
    assert isinstance(answer, list)
    said = [delta.text for delta in answer if isinstance(delta, TextDelta)]
    assert "".join(said) == "You sent Bearer [redacted], sk"
    assert all(said)
    ((error,), _) = served([refusal])
    assert "x[reda" in str(error)
    assert "sk-pl" not in str(error)


def test_calls_show_no_key_however_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-pl4nted")
    written = ('{"to": "sk-pl4nted"}', '{"to": "\\u0073k-pl4nted"}', '{"to": "sk-pl4nted')
    for arguments in written:
        ((deltas,), _) = served([Reply.calls(("sk-pl4nted", arguments), piece=3)])
        assert isinstance(deltas, list)
        (call,) = put_together(deltas)["calls"]
        assert "pl4nted" not in str(call)
        assert "[redacted]" in str(call)


@pytest.mark.parametrize("piece", [3, 1000])
def test_a_line_behind_a_url_in_arguments_is_no_user_of_it(piece: int) -> None:
    meant = {"text": "http://robot.local\ninfo@example.org", "to": "http://eve:pa55word@robot.local"}
    ((deltas,), _) = served([Reply.calls(("tell", json.dumps(meant)), piece=piece)])
    assert isinstance(deltas, list)
    (call,) = put_together(deltas)["calls"]
    assert call["arguments"] == meant | {"to": "http://[redacted]@robot.local"}


def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-pl4nted\n")
    with pytest.raises(UserError, match="OPENAI_API_KEY ends with a line end") as raised:
        create_model("openai:m")
    assert "pl4nted" not in str(raised.value)
    with pytest.raises(UserError, match="server's address") as raised:
        create_model("openai:m", base_url="ftp://eve:pa55word@localhost/v1")
    assert "pa55word" not in str(raised.value)


def test_what_it_does_not_do() -> None:
    model = create_model("openai:m", base_url="http://user:password@localhost/v1")
    with pytest.raises(ModelError, match=r"model 'm' at http://localhost/v1 can't be asked in virtual time"):
        run_virtual(heard(model))


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(UserError, match=r"pip install 'dimos-streams\[openai\]'"):
        create_model("openai:m", base_url="http://localhost/v1")


def test_a_server_in_a_thread_and_by_function() -> None:
    def echo(request: RecordedRequest) -> Reply:
        (said,) = parse_blocks(request.body["messages"][-1]["content"])
        return Reply.say(said.text.upper())

    async def main(url: str) -> str:
        model = create_model("openai:m", base_url=url)
        text: str = put_together(await heard(model, UserMessage("hello")))["text"]
        await model.close()
        return text

    with ModelServer(echo).in_thread() as server:
        assert asyncio.run(main(server.url)) == "HELLO"
