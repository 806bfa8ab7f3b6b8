"""A call is the same call whether it leaves defaults out or spells them out, and however its texts are spaced."""

from __future__ import annotations

from typing import Any

import pytest

from dimos_streams.agent.policies.canonical import canonical
from dimos_streams.agent.policies.gates.approval import matches
from dimos_streams.agent.policies.gates.settings import ApprovalRule
from dimos_streams.tool_stream.arguments.defaults import checked_arguments, with_defaults
from tests.agent.policies.brain import Answer, Brain
from tests.agent.policies.gate_inputs import offered
from tests.agent.policies.robot_stage import decide, robot_stage
from tests.helpers import until


@pytest.mark.feature("D5")
@pytest.mark.parametrize(
    ("rule", "call"),
    [
        ({"skill": "walk", "arguments": {"distance_m": ">0.5"}}, ("walk", {})),
        ({"skill": "drop", "arguments": {"what": "parcel"}}, ("drop", {})),
        ({"skill": "drop", "arguments": {"what": "parcel"}}, ("drop", {"what": " par\u00adcel\n"})),
        ({"skill": "drop", "arguments": {"what": "café *"}}, ("drop", {"what": "cafe\u0301  noir"})),
    ],
)
@pytest.mark.virtual_time
async def test_a_rule_is_not_evaded(rule: dict[str, Any], call: tuple[str, dict[str, Any]]) -> None:
    rules = [{**rule, "action": "deny", "reason": "no"}, {"skill": "*", "action": "allow"}]
    async with robot_stage(Brain([call], "ok"), approval={"rules": rules}) as (made, robot):
        await (await made.say("go")).result()
        assert robot.log_ == []
        assert "is not allowed. no" in made.entries("tool")[0].text


@pytest.mark.feature("C5")
@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.virtual_time
async def test_a_rejection_holds_for_the_call_spelt_out_and_nobody_is_asked_again(changed: bool) -> None:
    again: list[tuple[str, dict[str, Any]]] = [("drop", {"what": what}) for what in ("parcel", "parcel ")]
    async with robot_stage(Brain([("drop", {})], again, [("drop", {})], "ok")) as (made, robot):
        said = await made.say("go")
        view = await decide(made, "reject", reason="no", **({"arguments": {"what": "x"}} if changed else {}))
        assert view["arguments"] == {"what": "parcel"}
        assert (await said.result())["reason"] == "completed"
        assert robot.log_ == []
        assert all("has rejected" in entry.text for entry in made.entries("tool")[1:])


@pytest.mark.feature("B8", "D5")
@pytest.mark.virtual_time
async def test_an_approval_and_a_plans_step_hold_for_the_call_spelt_out() -> None:
    plan = {"goal": "g", "steps": [{"skill": "walk", "arguments": {}}, {"skill": "drop"}]}
    brain = Brain(
        [("create_plan", plan), ("submit_plan", {"plan": "plan-1"})],
        [("walk", {"distance_m": 1.0}), ("drop", {"what": " parcel"})],
        [("drop", {"what": "parcel"})],
        "ok",
    )
    async with robot_stage(brain, plan={"motions": 0}) as (made, robot):
        said = await made.say("go")
        view = await decide(made, "approve")
        assert [step["arguments"] for step in view["arguments"]["steps"]] == [
            {"distance_m": 1.0},
            {"what": "parcel"},
        ]
        assert (await decide(made, "approve"))["skill"] == "drop"
        await said.result()
        assert robot.log_ == ["walk 1", "drop  parcel", "drop  parcel"]  # as it was approved


@pytest.mark.feature("D5")
@pytest.mark.virtual_time
async def test_an_operators_arguments_are_filled_in_too() -> None:
    rules = {"rules": [{"skill": "walk"}]}
    async with robot_stage(Brain([("walk", {"distance_m": 3})], "ok"), approval=rules) as (made, robot):
        said = await made.say("go")
        await until(made.agent.core.gate_state.approvals.pending)
        await decide(made, "approve", arguments={})
        await said.result()
        assert robot.log_ == ["walk 1"]
        assert "walk(distance_m=1.0)" in made.entries("tool")[0].note


@pytest.mark.feature("D2")
@pytest.mark.virtual_time
async def test_spelling_a_default_out_now_and_then_is_repetition() -> None:
    calls: list[Answer] = [[("drop", {})], [("drop", {"what": "parcel"})], [("drop", {"what": "parcel "})]]
    rules = {"rules": [{"skill": "*", "action": "allow"}]}
    async with robot_stage(Brain(*calls * 4), approval=rules) as (made, robot):
        close = await (await made.say("go")).closed()
        assert "repetition" in close.text
        assert len(robot.log_) == 8


SCHEMA: dict[str, Any] = {
    "type": "object",
    "$defs": {
        "Point": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number", "default": 0}}},
        "Loop": {"$ref": "#/$defs/Loop"},
    },
    "properties": {
        "goal": {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}], "default": None},
        "way": {"type": "array", "items": {"$ref": "#/$defs/Point"}},
        "start": {"allOf": [{"$ref": "#/$defs/Point"}], "default": {"x": 1}},
        "loop": {"$ref": "#/$defs/Loop"},
        "unfit": {"type": "number", "default": None},
    },
}


def test_defaults_are_filled_in_at_every_depth() -> None:
    start = {"start": {"x": 1, "y": 0}, "unfit": None}
    assert with_defaults(SCHEMA, {}) == {"goal": None, **start}
    given = {"goal": {"x": 2}, "way": [{"x": 1}, {"y": 5}, 3], "loop": {"a": [1]}, "unknown": {"b": 1}}
    assert with_defaults(SCHEMA, given) == {
        "goal": {"x": 2, "y": 0},
        "way": [{"x": 1, "y": 0}, {"y": 5}, 3],
        "loop": {"a": [1]},
        "unknown": {"b": 1},
        **start,
    }
    assert given["goal"] == {"x": 2}
    for broken in ({"properties": 3}, {"properties": {"a": 1}}, {"$ref": 3}, {"$ref": "#/nowhere"}, {"anyOf": [1]}):
        assert with_defaults(broken, {"a": {"b": []}}) == {"a": {"b": []}}


def test_a_default_that_does_not_fit_is_none() -> None:
    plain = {**SCHEMA, "$defs": {"Point": SCHEMA["$defs"]["Point"]}}
    properties = {name: part for name, part in SCHEMA["properties"].items() if name != "loop"}
    skill = offered(parameters={**plain, "properties": properties})
    assert checked_arguments(skill, {"way": [{"x": 1}]}) == {
        "way": [{"x": 1, "y": 0}],
        "goal": None,
        "start": {"x": 1, "y": 0},
    }
    assert checked_arguments(skill, {"unfit": 1})["unfit"] == 1


def test_texts_that_look_the_same_are_the_same() -> None:
    for text in ("a b", " a  b ", "a\tb\n", "a\u200b b", "a\u00a0b", "\u202ea b", "\ufe0fa b", "a\u3164b"):
        assert canonical({"t": [{"u": text}]}) == '{"t":[{"u":"a b"}]}'
    assert canonical({"t": "A b"}) != canonical({"t": "a b"})
    assert matches(ApprovalRule(arguments={"a.b": "x  *"}), "any", {"a": {"b": " x y"}}, "")
    for unseen in ("\u200b", "\ufe0f", "\u034f", "\u17b4", "\u3164", "\u115f", "\uffa0", "\U000e0100"):
        assert matches(ApprovalRule(arguments={"what": "knife*"}), "any", {"what": f"{unseen}knife"}, "")
