"""The gates, one by one and as a chain."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from dimos_streams.agent.policies.gates.approval import matches
from dimos_streams.agent.policies.gates.base import Allow, Refuse
from dimos_streams.agent.policies.gates.duplicates import DuplicatesGate
from dimos_streams.agent.policies.gates.matching.zones import Zone
from dimos_streams.agent.policies.gates.settings import ApprovalRule
from dimos_streams.errors import SkillError
from tests.agent.policies.gate_bench import GateBench
from tests.agent.policies.gate_inputs import offered, request
from tests.agent.policies.test_zones import SQUARE
from tests.helpers import until


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("agent", "named", "skill", "meant"),
    [
        ("robot1/agent", "move", "robot1_move", True),
        ("robot1/agent", "move", "move", True),
        ("robot1/agent", "robot1_move", "robot1_move", True),
        ("robot1/agent", "/robot1/move", "robot1_move", True),
        ("site/robot1/agent", "move", "site_move", True),
        ("robot1/agent", "/move", "robot1_move", False),
        ("robot1/agent", "move", "robot1_remove", False),
        ("agent", "move", "robot1_move", False),
    ],
)
async def test_settings_name_skills_as_the_agent_sees_them(agent: str, named: str, skill: str, meant: bool) -> None:
    """A blueprint that is included in a namespace keeps its rules."""

    async def refused(**settings: Any) -> bool:
        return isinstance(await GateBench(agent=agent, **settings).review(skill), Refuse)

    assert await refused(disabled_skills=[named]) is meant
    assert await refused(approval={"rules": [{"skill": named, "action": "deny"}]}) is meant
    verdict = await GateBench(agent=agent, duplicates={named: "reject"}).review(skill)
    assert isinstance(verdict, Allow)
    assert (verdict.on_duplicate == "reject") is meant
    if meant:
        bench = GateBench(agent=agent, disabled_skills=[named])
        assert skill in bench.enabled.disabled
        assert bench.enabled.set(skill, True)
        assert isinstance(await bench.review(skill), Allow)


@pytest.mark.virtual_time
async def test_disabled_skills_are_neither_offered_nor_run() -> None:
    bench = GateBench(disabled_skills=["move"])
    assert bench.chain.tool(offered()) is None
    assert isinstance(await bench.review(), Refuse)
    assert bench.enabled.set("move", True)
    assert not bench.enabled.set("move", True)
    assert bench.chain.tool(offered()) is not None
    assert isinstance(await bench.review(), Allow)
    assert bench.events.kinds() == ["skill_set"]


@pytest.mark.virtual_time
async def test_a_skill_that_there_is_no_room_to_disable_is_refused_with_the_bound() -> None:
    bench = GateBench(disabled_skills=[f"skill_{number}" for number in range(9_999)])
    assert bench.enabled.set("look", False)
    assert not bench.enabled.set("look", False), "it was disabled already"
    with pytest.raises(SkillError, match="'move' can't be disabled: 10000 skills are disabled, and 10000 are"):
        bench.enabled.set("move", False)
    assert isinstance(await bench.review(distance_m=1), Allow)
    assert bench.enabled.set("look", True)
    assert bench.enabled.set("move", False)
    assert bench.events.kinds() == ["skill_set"] * 3


@pytest.mark.virtual_time
async def test_a_skill_disabled_while_its_call_waited_does_not_begin() -> None:
    bench = GateBench()
    bench.paused.clear()
    review = asyncio.create_task(bench.review(policy={"motion": True}, distance_m=1))
    await asyncio.sleep(1)
    bench.enabled.set("move", False)
    bench.paused.set()
    assert isinstance(await review, Refuse)
    bench.enabled.set("move", True)
    for _ in range(2):  # the refused one has used up none of the two
        assert isinstance(await bench.review(policy={"motion": True}, distance_m=1), Allow)


@pytest.mark.virtual_time
async def test_arguments_that_do_not_fit_are_refused_before_anybody_is_asked() -> None:
    bench = GateBench()
    verdict = await bench.review(policy={"approval": "ask"}, distance="far")
    assert isinstance(verdict, Refuse)
    assert "distance: is not an argument" in verdict.text
    assert bench.events.kinds() == []


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_a_number_that_is_too_large_is_named() -> None:
    bench = GateBench(zones=[Zone(name="lab", polygon=SQUARE)], approval={"rules": [{"arguments": {"x": ">-1 <1"}}]})
    for sign in (1, -1):
        verdict = await bench.review("go_to", {"motion": True}, x=sign * 10**500, y=1)
        assert isinstance(verdict, Refuse)
        assert f"x: {'-' * (sign < 0)}1.000e+500 is too large: a number is at most 1.798e+308" in verdict.text
    loose = offered("go_to", motion=True)
    verdict = await bench.chain.review(request(loose, path=[{"x": 10**4000}]))
    assert isinstance(verdict, Refuse)
    assert "path.0.x: 1.000e+4000 is too large" in verdict.text


def test_the_example_of_a_rule_is_about_short_moves_both_ways() -> None:
    page = (Path(__file__).parents[3] / "docs" / "gates.md").read_text()
    (line,) = [line for line in page.splitlines() if "{skill: move, arguments:" in line]
    (example,) = YAML(typ="safe").load(line)
    rule = ApprovalRule(**example)
    assert rule.action == "allow"
    assert [matches(rule, "move", {"distance_m": distance}, "") for distance in (-20, -0.5, 0.5, 20)] == [
        False,
        True,
        True,
        False,
    ]


@pytest.mark.virtual_time
async def test_rules_say_who_is_asked() -> None:
    def rule(skill: str = "*", action: str = "ask", **arguments: Any) -> ApprovalRule:
        return ApprovalRule(skill=skill, arguments=arguments, action=action)  # type: ignore[arg-type]

    assert matches(rule("mo?e"), "move", {}, "")
    assert not matches(rule("move"), "remove", {}, "")
    assert matches(rule(distance_m=">2"), "move", {"distance_m": 2.5}, "")
    assert not matches(rule(distance_m=">2"), "move", {"distance_m": 2}, "")
    assert not matches(rule(distance_m=">2"), "move", {"distance_m": True}, "")
    assert not matches(rule(distance_m=">2"), "move", {}, "")
    for pattern in (">-1 <1", "> -1  < 1", ">-1<1"):
        fits = [
            distance
            for distance in (-20, -1, -0.5, 0, 0.9, 1, True)
            if matches(rule(d=pattern), "m", {"d": distance}, "")
        ]
        assert fits == [-0.5, 0, 0.9], pattern
    assert matches(rule(text="[<]b> >x"), "say", {"text": "<b> >x"}, "")
    assert matches(rule(text="*kitchen*"), "say", {"text": "to the kitchen!"}, "")
    assert matches(rule(**{"target.x": "<=1"}), "go", {"target": {"x": 1}}, "")
    assert matches(rule(n=1), "go", {"n": 1.0}, "")
    assert matches(rule(n=1), "go", {"n": "1"}, "")
    assert not matches(rule(n=1, action="allow"), "go", {"n": "1"}, "")
    assert matches(rule(items="*cup*"), "take", {"items": ["a cup"]}, "")
    assert matches(rule(n="<=1"), "go", {"n": 1}, "")
    assert not matches(rule(n="<=1"), "go", {"n": True}, ""), "a truth is no number"
    assert [matches(rule(n="!=0 <=2"), "go", {"n": number}, "") for number in (0, 1, 2, 3)] == [
        False,
        True,
        True,
        False,
    ]
    assert [matches(rule(fast=text), "go", {"fast": True}, "") for text in ("true", "True")] == [True, False]

    rules = [
        {"skill": "move", "arguments": {"distance_m": "<1"}, "action": "allow"},
        {"skill": "move", "arguments": {"distance_m": ">9"}, "action": "deny", "reason": "That is too far."},
        {"skill": "move"},
    ]
    bench = GateBench(approval={"rules": rules})
    assert isinstance(await bench.review(distance_m=0.5), Allow)
    denied = await bench.review(distance_m=10)
    assert isinstance(denied, Refuse)
    assert denied.text.endswith("That is too far.")
    task = asyncio.create_task(bench.review(distance_m=5))
    await asyncio.sleep(0)
    bench.approvals.decide(bench.approvals.pending()[0].id, "approve", {"distance_m": 4})
    changed = await task
    assert isinstance(changed, Allow)
    assert changed.arguments == {"distance_m": 4}
    assert "move(distance_m=4)" in changed.note


@pytest.mark.virtual_time
async def test_who_declares_approval_is_asked_about_and_a_denial_gives_its_plan_back() -> None:
    bench = GateBench(plan={"motions": 0})
    policy = {"approval": "ask", "motion": True}
    await bench.approved(("move", {"distance_m": 1}))
    for decision in ("delete", "approve"):
        task = asyncio.create_task(bench.review(policy=policy, distance_m=1))
        await asyncio.sleep(0)
        bench.approvals.decide(bench.approvals.pending()[0].id, decision)
        verdict = await task
    assert isinstance(verdict, Allow)
    assert verdict.note == "", "the operator has changed nothing"
    task = asyncio.create_task(bench.review("drop", {"approval": "ask"}))
    await asyncio.sleep(0)
    bench.approvals.decide(bench.approvals.pending()[0].id, "reject", reason="keep it")
    refused = await task
    assert isinstance(refused, Refuse)
    assert "drop() was not approved: keep it" in refused.text


@pytest.mark.virtual_time
async def test_a_cancelled_review_leaves_nothing_behind() -> None:
    bench = GateBench(plan={"motions": 1})
    bench.paused.clear()
    for _ in range(3):
        task = asyncio.create_task(bench.review(policy={"motion": True, "approval": "ask"}, distance_m=1))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert bench.approvals.pending() == []
    bench.paused.set()
    assert isinstance(await bench.review(policy={"motion": True}, distance_m=1), Allow)


@pytest.mark.virtual_time
async def test_the_model_chooses_where_a_duplicate_is_to_be_confirmed() -> None:
    gate = DuplicatesGate({"wave": "replace"}, agent="")
    asks, plain, wave = offered(on_duplicate="confirm"), offered(), offered("wave", on_duplicate="confirm")
    assert list(gate.parameters(asks)["properties"]) == ["on_duplicate"]
    assert gate.parameters(plain) == plain.parameters
    assert gate.parameters(wave) == wave.parameters
    assert await gate.review(request(asks)) == Allow({})
    assert await gate.review(request(asks, on_duplicate="replace", a=1)) == Allow({"a": 1}, "replace")
    assert await gate.review(request(wave, a=1)) == Allow({"a": 1}, "replace")
    wrong = await gate.review(request(asks, on_duplicate="both"))
    assert isinstance(wrong, Refuse)
    assert "'both'" in wrong.text


def test_schemas_of_skills_that_have_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dimos_streams.agent.policies.gates.chain._MAX_TOOLS", 10)
    chain = GateBench().chain
    for number in range(50):
        assert chain.tool(offered(f"s{number}")) is not None
    assert list(chain._tools) == [f"s{number}" for number in range(40, 50)]


@pytest.mark.virtual_time
async def test_of_a_name_that_several_modules_offer_the_strictest_counts() -> None:
    # Which of them a call reaches may be another one when it begins.
    bench = GateBench(plan={"motions": 0})
    moving = await bench.review(policy={"shadowed": (offered("move", motion=True),)})
    assert isinstance(moving, Refuse)
    assert "plans only" in moving.text
    asking = asyncio.ensure_future(bench.review(policy={"shadowed": (offered("move", approval="ask"),)}))
    await until(bench.approvals.pending)
    bench.approvals.decide(bench.approvals.pending()[0].id, "reject")
    assert isinstance(await asking, Refuse)


@pytest.mark.virtual_time
async def test_a_skill_whose_module_was_started_again_with_other_parameters_is_offered_anew() -> None:
    chain, parameters = GateBench().chain, {"type": "object", "properties": {"by": {"type": "number"}}}
    assert chain.tool(offered("walk")) == chain.tool(offered("walk"))
    tool = chain.tool(offered("walk", parameters=parameters))
    assert tool is not None
    assert tool.parameters == parameters
