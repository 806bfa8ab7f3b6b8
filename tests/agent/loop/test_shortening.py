"""Conversations that become shorter: at their bound, because a model can't take them, and when they are forgotten."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dimos_streams.agent.config import AgentConfig
from dimos_streams.agent.context.conversation import LEFT_OUT, Conversation
from dimos_streams.agent.context.entry import Role
from dimos_streams.agent.context.shortening import halved, is_final
from dimos_streams.agent.models.protocol import (
    AssistantMessage,
    ContextLengthError,
    Finish,
    Message,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolResultMessage,
    UserMessage,
)
from dimos_streams.agent.models.thoughts import Thoughts
from dimos_streams.tool_stream.event import ToolEvent
from tests.agent.loop.fake_bridge import FakeCall, offered
from tests.agent.loop.function_model import Answer, FunctionModel, asks, says
from tests.agent.loop.line_world import LineWorld

UPDATE = ToolEvent(utime=1, call_id="c", seq=2, type="update", module="m", skill="look", caller="agent", text="a cat")
PARTS: dict[str, tuple[Message | None, ...]] = {
    "input": (UserMessage("w" * 50),),
    "update": (UserMessage("n" * 50, UPDATE),),
    "answer": (AssistantMessage("a" * 50),),
    "calls": (
        AssistantMessage("", (ToolCall("t", "look", "{}"), ToolCall("u", "look", "{}"))),
        ToolResultMessage("t", "look", "r" * 900),
        None,
        ToolResultMessage("u", "look", "r"),
    ),
    "note": (None,),
}


def texts(messages: list[Message | None] | tuple[Message, ...]) -> str:
    return "".join(message.text for message in messages if message is not None)


@pytest.mark.slow
@example(["input"] * 12)
@given(st.lists(st.sampled_from(list(PARTS))))
def test_what_is_left_is_a_conversation(parts: list[str]) -> None:
    messages: list[Message | None] = [
        message for part in (*parts, "input", "calls", "update") for message in PARTS[part]
    ]
    newest = messages[-1]
    words = [m for m in messages if isinstance(m, UserMessage) and m.event is None][-1]
    while (shorter := halved(messages)) is not None:
        assert len(texts(shorter)) < len(texts(messages))
        messages = shorter
        seen = [message for message in messages if message is not None]
        assert any(message is words for message in seen)
        assert seen[-1] is newest
        assert isinstance(seen[0], UserMessage)
        waiting = 0
        for message in seen:  # calls and their results
            waiting += len(message.tool_calls) if isinstance(message, AssistantMessage) else 0
            waiting -= isinstance(message, ToolResultMessage)
            assert waiting >= 0
            assert waiting == 0 or not isinstance(message, UserMessage)
        assert waiting == 0
    since = len(parts) - parts[::-1].index("answer") if "answer" in parts else 0
    unanswered = [*parts[since:], "input"].count("input")
    assert len(texts(messages)) < max(700, 50 * unanswered + 51), "all input stays that no answer closes"


@pytest.mark.feature("D7")
def test_thoughts_go_where_nothing_else_can_become_shorter() -> None:
    thought = AssistantMessage("Yes.", thoughts=Thoughts("t" * 10_000))
    shorter = halved([UserMessage("look"), thought])
    assert shorter == [UserMessage("look"), AssistantMessage("Yes.")]
    assert halved(shorter) is None


@pytest.mark.slow
@settings(max_examples=40)
@example([("update", 0)], 1)
@example([("input", 0), ("update", 0)], 1)
@given(
    st.lists(st.tuples(st.sampled_from(("input", "update")), st.integers(0, 2)), min_size=1, max_size=6),
    st.integers(0, 2),
)
def test_no_answer_stays_that_follows_nothing_or_an_answer(
    exchanges: list[tuple[str, int]], newest_calls: int
) -> None:
    """There are servers that refuse such a conversation. Each exchange is what was said, calls, and an answer; the
    newest one goes on."""
    parts = [part for said, calls in exchanges for part in (said, *["calls"] * calls, "answer")][:-1]
    messages: list[Message | None] = [m for part in (*parts, *["calls"] * newest_calls) for m in PARTS[part]]
    said = [message for message in messages if isinstance(message, UserMessage)][-1]
    while (shorter := halved(messages)) is not None:
        messages = shorter
        seen = [message for message in messages if message is not None]
        assert any(message.text == said.text for message in seen)
        for before, message in itertools.pairwise((None, *seen)):
            answers_nothing = before is None or is_final(before)
            assert not (answers_nothing and isinstance(message, AssistantMessage))


def limited(characters: int, answer: Answer) -> FunctionModel:
    """A model that takes so many characters."""

    def react(request: ModelRequest) -> Answer:
        if len(texts(request.messages)) > characters:
            raise ContextLengthError("maximum context length")
        return answer

    return FunctionModel(react)


@pytest.mark.feature("D7")
@pytest.mark.virtual_time
async def test_a_conversation_that_is_too_long_is_shortened_and_stays_so_after_a_restart(tmp_path: Path) -> None:
    world = LineWorld()
    model = limited(6000, says("y" * 500))
    async with world.with_model(model, tmp_path) as agent:
        for number in range(30):
            mission = await agent.over(await agent.say(f"{number} " + "x" * 500))
            assert mission.reason == "completed", agent.data("error")
        refusals = len(model.requests) - 30
        assert 1 <= refusals <= 10
        assert len(agent.data("shortened")) == refusals
        assert model.requests[-1].messages[-1].text.startswith("29 ")
        assert LEFT_OUT in model.requests[-1].messages[0].text
        assert len([entry for entry in agent.core.conversation.entries if entry.role == "operator"]) == 30
        before = agent.core.conversation.messages()
        await agent.leave()
    other = limited(6000, says("here"))
    async with world.with_model(other, tmp_path) as agent:
        assert agent.core.conversation.messages() == before
        assert (await agent.over(await agent.say("and now?"))).text == "here"


@pytest.mark.feature("D7", "D2")
@pytest.mark.virtual_time
async def test_what_can_not_be_shortened_enough_ends_the_mission_and_not_the_agent() -> None:
    world = LineWorld()
    model = limited(10, says("here"))
    async with world.with_model(model) as agent:
        mission = await agent.over(await agent.say("look " * 1000))
        assert mission.reason == "error"
        assert len(model.requests) < 10
        model.answer_with(lambda request: says("here"))
        assert (await agent.over(await agent.say("and now?"))).text == "here"


@pytest.mark.slow
@pytest.mark.feature("B10")
@pytest.mark.virtual_time
async def test_operators_input_is_kept_where_updates_fill_the_conversation() -> None:
    world = LineWorld()

    async def chat(call: FakeCall) -> str:
        for number in range(200):
            call.send("update", f"step {number}")
            await asyncio.sleep(1)
        return "end"

    world.bridge.bodies["chat"] = (offered("chat"), chat)
    model = FunctionModel(lambda request: says("") if "chat" in str(request.messages) else asks(("chat", {})))
    model.answer_with(lambda r: asks(("chat", {})) if len(r.messages) < 3 else says(""))
    async with world.with_model(model, conversation_entries=30) as agent:
        await agent.over(await agent.say("tell me at the end what you saw"))
        newest = model.requests[-1].messages
        assert "tell me at the end what you saw" in [message.text for message in newest]
        assert LEFT_OUT in newest[0].text
        assert len(agent.core.conversation.entries) <= 31
        notes = [data["text"] for data in agent.data("note") if "were dropped" in data["text"]]
        assert notes


ROLES: tuple[Role, ...] = ("operator", "event", "assistant", "note")


@pytest.mark.slow
@given(st.lists(st.sampled_from(ROLES), max_size=200), st.integers(10, 20))
@example([*["operator"] * 10, "assistant"], 10)
@example(["operator", "assistant", "event", *["note"] * 8], 10)
def test_the_entries_are_bounded(roles: list[Role], limit: int) -> None:
    conversation = Conversation(max_entries=limit)
    for role in roles:
        conversation.add_entry(role, "x", event=UPDATE if role == "event" else None)
    numbers = [entry.number for entry in conversation.entries]
    assert numbers == sorted(numbers)
    assert len(roles) - len(numbers) == conversation.take_dropped()
    since = list(reversed(roles)).index("assistant") if "assistant" in roles else len(roles)
    if "operator" not in roles[len(roles) - since :]:
        assert len(numbers) <= limit


@pytest.mark.feature("B10")
@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.virtual_time
async def test_forget_begins_a_new_conversation(busy: bool, tmp_path: Path) -> None:
    world = LineWorld()
    model = FunctionModel(lambda request: says("fine"))
    async with world.with_model(model, tmp_path) as agent:
        await agent.over(await agent.say("remember 1234"))
        if busy:
            model.answer_with(
                lambda r: asks(("move", {"by": 1})) if isinstance(r.messages[-1], UserMessage) else says("moved")
            )
            mission = await agent.say("move")
            await asyncio.sleep(0.5)
            agent.core.memory.forget()
            assert (await agent.over(mission)).text == "moved"
        else:
            agent.core.memory.forget()
        seen = texts(agent.core.conversation.messages())
        assert "1234" not in seen
        assert ("move" in seen) is busy
        assert any("1234" in entry.text for entry in agent.core.conversation.entries)
        await agent.leave()
    again = FunctionModel(lambda request: says("fine"))
    async with world.with_model(again, tmp_path) as agent:
        await agent.over(await agent.say("what did I say?"))
        assert "1234" not in texts(again.requests[-1].messages)


@pytest.mark.feature("D2")
@pytest.mark.parametrize(
    ("piece", "limit"),
    [
        (TextDelta("bla " * 100), "answer_characters"),
        (ReasoningDelta("hm " * 100), "reasoning_characters"),
        (ToolCallDelta(index=0, id="t", name="move", arguments='{"by": "' + "x" * 300), "argument_characters"),
    ],
)
@pytest.mark.virtual_time
async def test_an_answer_without_end_is_cut_off(
    piece: TextDelta | ReasoningDelta | ToolCallDelta, limit: str
) -> None:
    world = LineWorld()
    model = FunctionModel(lambda request: [piece] * 1000 if len(request.messages) < 3 else says("sorry"))
    async with world.with_model(model, limits={limit: 1000}) as agent:
        mission = await agent.over(await agent.say("go"))
        first = agent.data("answer")[0]
        assert first["finish"] == "too_long"
        assert "more" in first["why_cut"]
        assert len(str(agent.core.conversation.messages())) < 5000
        assert world.log == []
        assert mission.reason == ("completed" if limit == "argument_characters" else "too_long")


@pytest.mark.feature("B9")
@pytest.mark.virtual_time
async def test_a_finish_with_calls_of_which_none_came_is_reported() -> None:
    world = LineWorld()
    model = FunctionModel(lambda request: [Finish("tool_calls")])
    async with world.with_model(model) as agent:
        mission = await agent.over(await agent.say("go"))
        assert mission.reason == "no_calls"
        assert "none came" in agent.data("note")[-1]["text"]


@pytest.mark.feature("D2", "D8")
@pytest.mark.virtual_time
async def test_tokens_are_estimated_where_the_server_reports_none() -> None:
    world = LineWorld()
    silent: Answer = [delta for delta in asks(("move", {"by": 1})) if not hasattr(delta, "input_tokens")]
    limits = {"max_tokens": 900}
    async with world.with_model(FunctionModel(lambda request: silent), limits=limits, max_iterations=50) as agent:
        mission = await agent.over(await agent.say("x" * 400))
        assert mission.reason == "max_tokens"
        usage = agent.data("usage")
        assert all(data["estimated"] for data in usage)
        assert usage[0]["input_tokens"] > 100
        assert sum(data["input_tokens"] + data["output_tokens"] for data in usage) > 900
        (note,) = [data for data in agent.data("note") if "estimated" in data["text"]]
        assert note["text"].startswith("The model reports no usage: tokens are estimated, 4 characters each")


@pytest.mark.feature("D2")
def test_a_bound_of_costs_without_a_price_is_refused() -> None:
    with pytest.raises(ValueError, match=r"limits.max_cost is 0.5, but no price is known"):
        AgentConfig.model_validate({"limits": {"max_cost": 0.5}})
    AgentConfig.model_validate({"limits": {"max_cost": 0.5}, "model_options": {"pricing": {"input": 1}}})
