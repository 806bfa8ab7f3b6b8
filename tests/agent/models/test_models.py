"""The offline model's grammar and manners, and the scripted model."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.agent import models
from dimos_streams.agent.models import check_model, create_model
from dimos_streams.agent.models.offline import OfflineModel
from dimos_streams.agent.models.offline_grammar import Misunderstood, parse
from dimos_streams.agent.models.protocol import (
    AssistantMessage,
    Finish,
    ImagePart,
    Message,
    Model,
    ModelDelta,
    ModelError,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    TokenUsage,
    ToolCall,
    ToolCallDelta,
    ToolResultMessage,
    ToolSchema,
    UserMessage,
)
from dimos_streams.agent.module import Agent
from dimos_streams.blueprint import blueprint, module
from dimos_streams.cli.running.plan_checks import _asking_a_server
from dimos_streams.errors import UserError
from dimos_streams.tool_stream.event import ToolEvent

STOCK = (
    *("look_out_for", "follow_person", "stop_following", "stop_looking_out"),
    *("move", "turn", "go_to", "stop", "observe"),
)
STOP_ALL = [("cancel_call", {"call_id": "all", "reason": "the operator said stop"})]
FOLLOW = {"then": {"skill": "follow_person", "arguments": {"description": "$label"}}}


def answer(model: Model, *messages: Message, offered: tuple[str, ...] = STOCK) -> list[ModelDelta]:
    async def main() -> list[ModelDelta]:
        tools = tuple(ToolSchema(name, "", {}) for name in offered)
        return [delta async for delta in model.stream(ModelRequest(messages, tools))]

    return asyncio.run(main())


def text_of(deltas: list[ModelDelta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


@pytest.mark.parametrize(
    ("words", "steps"),
    [
        ("follow the person in red", [("follow_person", {"description": "person in red"})]),
        ("Please follow a man for 2 minutes.", [("follow_person", {"description": "man", "timeout_s": 120.0})]),
        (
            "follow the person in red for two minutes",
            [("follow_person", {"description": "person in red", "timeout_s": 120.0})],
        ),
        ("follow a man for half a minute", [("follow_person", {"description": "man", "timeout_s": 30.0})]),
        ("follow a man for an hour", [("follow_person", {"description": "man", "timeout_s": 3600.0})]),
        ("follow a man for half an hour", [("follow_person", {"description": "man", "timeout_s": 1800.0})]),
        *(
            (f"follow a man for {word} seconds", [("follow_person", {"description": "man", "timeout_s": seconds})])
            for word, seconds in [("seven", 7.0), ("nine", 9.0), ("eleven", 11.0), ("twelve", 12.0), ("fifty", 50.0)]
        ),
        (
            "look out for a dog for half an hour and follow it for forty-five seconds",
            [
                (
                    "look_out_for",
                    {
                        "descriptions": ["dog"],
                        "timeout_s": 1800.0,
                        "then": {
                            "skill": "follow_person",
                            "arguments": {"description": "$label", "timeout_s": 45.0},
                        },
                    },
                )
            ],
        ),
        ("look out for a person in a red shirt", [("look_out_for", {"descriptions": ["person in a red shirt"]})]),
        (
            "look out for a person in a red shirt or a person in green",
            [("look_out_for", {"descriptions": ["person in a red shirt", "person in green"]})],
        ),
        ("watch for a man in red or green", [("look_out_for", {"descriptions": ["man in red or green"]})]),
        ("look for someone in black and white", [("look_out_for", {"descriptions": ["someone in black and white"]})]),
        *(
            (
                f"look out for a person in red{joint} {them}",
                [("look_out_for", {"descriptions": ["person in red"]} | FOLLOW)],
            )
            for joint, them in [(" and follow", "them"), (", then follow", "him"), (" and then follow", "it")]
        ),
        (
            "look out for a dog for 30 seconds and follow it",
            [("look_out_for", {"descriptions": ["dog"], "timeout_s": 30.0} | FOLLOW)],
        ),
        (
            "look out for a person in red for 20 seconds, then follow them for 2 minutes and stop",
            [
                (
                    "look_out_for",
                    {
                        "descriptions": ["person in red"],
                        "timeout_s": 20.0,
                        "then": {
                            "skill": "follow_person",
                            "arguments": {"description": "$label", "timeout_s": 120.0},
                        },
                    },
                ),
                *STOP_ALL,
            ],
        ),
        ("follow the person", [("follow_person", {"description": "person"})]),
        ("stop", STOP_ALL),
        ("STOP everything!", STOP_ALL),
        ("stop the patrol", [("stop_patrol", {})]),
        ("patrol", [("patrol", {})]),
        ("patrol 2 rounds", [("patrol", {"rounds": 2})]),
        ("stop following", [("stop_following", {})]),
        ("stop following them", [("stop_following", {})]),
        ("stop looking", [("stop_looking_out", {})]),
        ("go to 2 1", [("go_to", {"x": 2.0, "y": 1.0})]),
        ("go to (2, -1.5)", [("go_to", {"x": 2.0, "y": -1.5})]),
        ("drive to x=2 y=1", [("go_to", {"x": 2.0, "y": 1.0})]),
        ("move 1.5", [("move", {"distance_m": 1.5})]),
        ("move forward 1.5 m", [("move", {"distance_m": 1.5})]),
        ("move back 2 metres", [("move", {"distance_m": -2.0})]),
        ("turn left 90 degrees", [("turn", {"angle_deg": 90.0})]),
        ("turn right", [("turn", {"angle_deg": -90.0})]),
        ("turn 90", [("turn", {"angle_deg": 90.0})]),
        ("turn by -45.5°", [("turn", {"angle_deg": -45.5})]),
        ("turn 30 degrees to the right", [("turn", {"angle_deg": -30.0})]),
        ("turn around", [("turn", {"angle_deg": 180.0})]),
        ("what do you see?", [("observe", {})]),
        (
            "move 1, turn left 45 and then go to 2 1",
            [("move", {"distance_m": 1.0}), ("turn", {"angle_deg": 45.0}), ("go_to", {"x": 2.0, "y": 1.0})],
        ),
        ("go to 2,1 then what do you see", [("go_to", {"x": 2.0, "y": 1.0}), ("observe", {})]),
    ],
)
def test_grammar(words: str, steps: list[tuple[str, dict[str, Any]]]) -> None:
    parsed = parse(words)
    assert not any(isinstance(step, Misunderstood) for step in parsed)
    assert [(step.skill, step.arguments) for step in parsed if not isinstance(step, Misunderstood)] == steps


@pytest.mark.parametrize(
    ("words", "means"),
    [
        ("TURN R\u0130GHT 90", "turn right 90"),
        ("turn r\u0131ght", "turn right"),
        ("move bac\u212a 2", "move back 2"),
        ("follow a man for 3 \u017fec", "follow a man for 3 s"),
        ("follow a man for \u017fix m\u0131nutes", "follow a man for 6 min"),
        ("follow a man for \u0661 s", "follow a man for 1 s"),
    ],
)
def test_letters_of_other_keyboards_that_a_command_may_have_mean_what_they_stand_for(words: str, means: str) -> None:
    """To the right is not to the left: Turkish keyboards write two letters for i."""
    assert parse(words) == parse(means)


@pytest.mark.parametrize("piece", [", ", "and ", "then, "])
def test_words_without_a_command_take_no_time_in_which_the_agent_hears_nobody(piece: str) -> None:
    words = (piece * 4000)[:4000].strip()
    began = time.process_time()
    assert parse(words) == [Misunderstood(words.strip(" .!?"))]
    assert time.process_time() - began < 0.1


def test_a_command_that_is_longer_than_any_is_none_and_takes_no_time() -> None:
    words = "look out for " + "and then " * 4_000
    begun = time.process_time()
    assert parse(words) == [Misunderstood(words.strip())]
    assert time.process_time() - begun < 1.0


@pytest.mark.parametrize(
    "words", ["", "help", "make me a coffee", "follow", "follow them", "go to the kitchen", "turn", "move left"]
)
def test_what_it_cant_understand_it_says_with_what_it_can(words: str) -> None:
    deltas = answer(OfflineModel(), UserMessage(words))
    assert "I understand: follow the person in red" in text_of(deltas)
    asked = words in ("", "help")
    assert deltas[-1] == (Finish("stop") if asked else Finish("not_understood", about=(words,)))


def test_input_that_comes_with_updates_is_heard() -> None:
    seen_event = ToolEvent(
        utime=1, call_id="c", seq=2, type="update", module="m", skill="look", caller="agent", text="a cat"
    )
    deltas = answer(OfflineModel(), UserMessage("a cat", event=seen_event), UserMessage("move 1"))
    assert [delta.name for delta in deltas if isinstance(delta, ToolCallDelta)] == ["move"]


def test_it_names_only_what_is_offered() -> None:
    text = text_of(answer(OfflineModel(), UserMessage("make coffee"), offered=("move",)))
    assert text.startswith("I don't understand 'make coffee'. I understand: move 1.5. Any other skill")
    assert "agent.model=scripted:FILE" in text, "who has written a skill of their own reads how to have it called"
    text = text_of(answer(OfflineModel(), UserMessage("move 1"), offered=("turn",)))
    assert text == "No skill 'move' is offered at the moment."
    assert text_of(answer(OfflineModel(), UserMessage("stop"), offered=("move",))) == "There is nothing to stop."
    (call, _, _) = answer(OfflineModel(), UserMessage("stop"), offered=("move", "list_calls", "cancel_call"))
    assert isinstance(call, ToolCallDelta)
    assert call.name == "cancel_call"


TWO_ROBOTS = tuple(f"{robot}_{skill}" for robot in ("robot1", "robot2") for skill in STOCK)


@pytest.mark.parametrize(
    ("words", "offered", "skill", "arguments"),
    [
        ("follow a man", ("robot1_follow_person",), "robot1_follow_person", {"description": "man"}),
        ("robot2: move 1", TWO_ROBOTS, "robot2_move", {"distance_m": 1.0}),
        ("Robot1, turn left", TWO_ROBOTS, "robot1_turn", {"angle_deg": 90.0}),
        ("robot2: stop following", TWO_ROBOTS, "robot2_stop_following", {}),
        (
            "robot1: look out for a cat and follow it",
            TWO_ROBOTS,
            "robot1_look_out_for",
            {
                "descriptions": ["cat"],
                "then": {"skill": "robot1_follow_person", "arguments": {"description": "$label"}},
            },
        ),
    ],
)
def test_robots_by_name(words: str, offered: tuple[str, ...], skill: str, arguments: dict[str, Any]) -> None:
    delta, _, finish = answer(OfflineModel(), UserMessage(words), offered=offered)
    assert isinstance(delta, ToolCallDelta)
    assert (delta.name, json.loads(delta.arguments)) == (skill, arguments)
    assert finish == Finish("tool_calls")


def test_it_asks_which_robot() -> None:
    text = text_of(answer(OfflineModel(), UserMessage("move 1"), offered=TWO_ROBOTS))
    assert text == "which one do you mean: robot1_move, robot2_move? Say for instance 'robot1: stop'."


def done(number: int, name: str, text: str, *, is_error: bool = False, **arguments: Any) -> tuple[Message, Message]:
    call = ToolCall(f"call_{number}", name, json.dumps(arguments))
    return AssistantMessage("", (call,)), ToolResultMessage(call.id, name, text, is_error)


def test_steps_come_one_by_one_and_cleaning_up_always() -> None:
    words = UserMessage("move 1, turn left, stop")
    moved = done(1, "move", "moved", distance_m=1.0)
    failed = done(1, "move", "blocked", is_error=True, distance_m=1.0)
    offered = ("move", "turn", "cancel_call")
    names = [
        next(each.name for each in answer(OfflineModel(), words, *after, offered=offered) if hasattr(each, "name"))
        for after in [(), moved, failed]
    ]
    assert names == ["move", "turn", "cancel_call"]


def event(type: Any, text: str, **data: Any) -> UserMessage:
    seen_event = ToolEvent(
        utime=1, call_id="c", seq=2, type=type, module="m", skill="look_out_for", caller="agent", text=text, data=data
    )
    return UserMessage(f"[look_out_for] {text}", seen_event)


def test_it_comments_on_events() -> None:
    before = (UserMessage("look out for a cat"), AssistantMessage("looking"))
    found = event("update", "Found a cat")
    over = event("close", "nobody came", outcome="timed_out")
    assert text_of(answer(OfflineModel(), *before, found)) == "look_out_for: Found a cat"
    text = text_of(answer(OfflineModel(), *before, found, over))
    assert text == "look_out_for: Found a cat\nlook_out_for has ended (timed out): nobody came"
    assert text_of(answer(OfflineModel(), event("close", "cat", outcome="completed"))) == "look_out_for is done: cat"


def write(path: Path, text: str) -> Model:
    path.write_text(text)
    return create_model(f"scripted:{path}")


def test_a_script_is_played(tmp_path: Path) -> None:
    model = write(
        tmp_path / "s.yaml",
        """
turns:
  - expect: red
    text: [Look, ing]
    calls: [{skill: move, arguments: {distance_m: 1}}, {skill: stop, arguments: "{", id: x}]
    usage: {input_tokens: 3, output_tokens: 4}
  - deltas: [{index: 0, name: mo}]
    finish: null
  - text: half
    error: overloaded
  - expect: blue
""",
    )
    assert answer(model, UserMessage("the red one")) == [
        TextDelta("Look"),
        TextDelta("ing"),
        ToolCallDelta(index=0, id="call_1", name="move", arguments='{"distance_m": 1}'),
        ToolCallDelta(index=1, id="x", name="stop", arguments="{"),
        TokenUsage(3, 4),
        Finish("tool_calls"),
    ]
    assert answer(model) == [ToolCallDelta(index=0, name="mo")]
    with pytest.raises(ModelError, match="overloaded"):
        answer(model)
    with pytest.raises(ModelError, match=r"turn 4 expects 'blue', the message is 'red'"):
        answer(model, UserMessage("red"))
    assert answer(model) == [Finish("script_ended")]


@pytest.mark.virtual_time
async def test_a_script_takes_its_time_and_fails_as_it_says(tmp_path: Path) -> None:
    model = write(
        tmp_path / "s.yaml",
        """
turns:
  - delay_s: 2
    pause_s: 0.5
    reasoning: hm
    text: [a, b]
    usage: {input_tokens: 9, cached_tokens: 8}
  - error: {text: busy, retryable: true, retry_after_s: 4, status: 503}
""",
    )

    begun = clock.monotonic()
    seen_event = [(clock.monotonic() - begun, delta) async for delta in model.stream(ModelRequest(()))]
    assert seen_event == [
        (2.0, ReasoningDelta("hm")),
        (2.5, TextDelta("a")),
        (3.0, TextDelta("b")),
        (3.5, TokenUsage(9, 0, 8)),
        (4.0, Finish("stop")),
    ]
    with pytest.raises(ModelError, match="busy") as caught:
        [delta async for delta in model.stream(ModelRequest(()))]
    assert (caught.value.retryable, caught.value.retry_after_s, caught.value.status) == (True, 4, 503)


def test_a_script_expects_tools_and_images(tmp_path: Path) -> None:
    text = "turns: [{expect_tools: [move, fly]}, {expect_images: 1}, {expect_images: 1}]"
    model = write(tmp_path / "s.yaml", text)
    with pytest.raises(ModelError, match=r"turn 1 expects the tools \['fly'\], offered are \['look_out_for'"):
        answer(model)
    seen = ToolResultMessage("a", "observe", "a room", images=(ImagePart(b"x"),))
    asked = AssistantMessage("", (ToolCall("a", "observe", "{}"),))
    assert answer(model, asked, seen, UserMessage("and?")) == [Finish("stop")]
    with pytest.raises(ModelError, match="turn 3 expects 1 images, there are 0"):
        answer(model, asked, seen, AssistantMessage("A room."), UserMessage("and?"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("turns:\n  - {text: a}\n  - {txt: a}", r"s\.yaml:3: unknown key 'txt' in turn 2; did you mean 'text'\?"),
        ("turns:\n  - delay_s: -1", r"s\.yaml:2: turn 1\.delay_s: it must be at least 0 \(given: -1\)"),
        ("turns:\n  - text: 3", r"^/.*/s\.yaml:2: turn 1\.text: it must be a text or a list \(given: 3\)$"),
        ("turns: [", "not valid YAML"),
        ("turns: 5\nturns: 6", r"s\.yaml:2: key 'turns' is there twice, also at line 1"),
        ("5", r"s\.yaml:1: it must be an object"),
        ("", "the model script needs the key 'turns'"),
        (f"turns: {'[' * 200}{']' * 200}", "nested deeper than 100"),
    ],
)
def test_a_bad_script_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        write(tmp_path / "s.yaml", text)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "ofline",
            r"no model 'ofline'; did you mean 'offline'\? \(valid: 'offline', 'scripted:FILE', 'openai:MODEL'\)",
        ),
        ("opnai:gpt-5", "no model 'opnai:gpt-5'; did you mean 'openai:gpt-5'?"),
        ("openai", "no model 'openai'; did you mean 'openai:MODEL'?"),
        ("openai:", "no model 'openai:'; did you mean 'openai:MODEL'?"),
        ("scripted", "no model 'scripted'; did you mean 'scripted:FILE'?"),
        ("offline:x", "no model 'offline:x'; did you mean 'offline'?"),
        ("scripted:/nowhere/s.yaml", "there is no model script file '/nowhere/s.yaml'"),
    ],
)
def test_a_bad_name_is_named(name: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        create_model(name)


def test_what_asks_a_server_is_known_by_its_kind_to_check_and_to_virtual_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(models, "_AT_SERVERS", ("openai", "other"))
    check_model("other:m")  # which is not made: it may get its key later
    asking = blueprint("b", module(Agent, name="agent", model="other:m"))
    assert _asking_a_server(asking) == "agent.model=other:m"
    assert _asking_a_server(blueprint("b", module(Agent, name="agent", model="offline"))) is None
