"""The gates, one by one and as a chain."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from dimos_streams import clock
from dimos_streams.agent.policies.gates.approval import matches
from dimos_streams.agent.policies.gates.base import Allow, CallRequest, Refuse, Verdict
from dimos_streams.agent.policies.gates.chain import GateChain, build_chain, load_gate
from dimos_streams.agent.policies.gates.duplicates import DuplicatesGate
from dimos_streams.agent.policies.gates.gate_state import GateState
from dimos_streams.agent.policies.gates.settings import ApprovalRule, GateSettings, Zone
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.errors import SkillError, UserError
from dimos_streams.messages.planar import PlanarPose
from dimos_streams.operator.messages.agent import AgentEvent
from tests.agent.policies.parts import Events, offered, request
from tests.agent.policies.test_zones import SQUARE
from tests.helpers import until

MOVE = {
    "type": "object",
    "properties": {"distance_m": {"type": "number"}, "x": {"type": "number"}, "y": {"type": "number"}},
    "additionalProperties": False,
}


class Doubling:
    """A user's gate: twice the distance."""

    async def review(self, request: CallRequest) -> Verdict:
        return Allow({**request.arguments, "distance_m": request.arguments["distance_m"] * 2}, request.on_duplicate)


class NotAGate:
    """Has no review."""


class Failing:
    """A gate with a bug."""

    async def review(self, request: CallRequest) -> Verdict:
        raise RuntimeError("a bug")


class Cancelled:
    """A gate that asks a service, whose answer somebody has cancelled."""

    async def review(self, request: CallRequest) -> Verdict:
        answer = asyncio.get_running_loop().create_future()
        answer.cancel()
        await answer
        return Allow(request.arguments)


class FailingLater:
    """A gate whose second look at the world has a bug."""

    async def review(self, request: CallRequest) -> Verdict:
        answers = iter([None])
        return Allow(request.arguments, again=lambda arguments: next(answers))


class BenchPermit:
    """Holds while an event is set."""

    def __init__(self, let_go: asyncio.Event) -> None:
        self._let_go = let_go

    @property
    def holds(self) -> bool:
        return self._let_go.is_set()

    async def wait(self) -> None:
        await self._let_go.wait()


class GateBench:
    """A chain with the state of its gates."""

    def __init__(self, *, agent: str = "agent", **settings: Any) -> None:
        self.events = Events()
        self.settings = GateSettings(**settings)
        self.gate_state = GateState(self.settings, self.events.emit, lambda skill, arguments: arguments, agent=agent)
        state = self.gate_state
        self.enabled, self.approvals, self.plans = state.enabled, state.approvals, state.plans
        self.pose: PlanarPose | None = None
        self.paused = asyncio.Event()
        self.paused.set()
        self.chain: GateChain = build_chain(
            self.settings,
            self.gate_state,
            pose=lambda: self.pose,
            permit=self._permit,
        )

    def _permit(self, request: CallRequest) -> BenchPermit:
        return BenchPermit(self.paused)

    async def review(self, name: str = "move", policy: dict[str, Any] | None = None, **arguments: Any) -> Verdict:
        return await self.chain.review(request(offered(name, parameters=MOVE, **(policy or {})), **arguments))

    async def approved(self, *steps: tuple[str, dict[str, Any]]) -> None:
        """A plan that the operator has approved."""
        plan = self.plans.create("a goal", [{"skill": skill, "arguments": given} for skill, given in steps])
        task = asyncio.create_task(self.plans.submit(plan.id, ("m1",)))
        await asyncio.sleep(0)
        self.approvals.decide(self.approvals.pending()[0].id, "approve")
        await task


@pytest.mark.virtual_time
async def test_the_order_is_as_documented() -> None:
    bench = GateBench(gates=[f"{__name__}:Doubling"])
    names = [type(gate).__name__.removesuffix("Gate") for gate in bench.chain.gates]
    documented = (Path(__file__).parents[3] / "docs" / "gates.md").read_text()
    listed = [line.split("`")[1] for line in documented.splitlines() if line[:1].isdigit() and ". `" in line]
    users = names.index("Doubling")
    assert [*names[:users], "your own", *names[users + 1 :]] == listed


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
async def test_motions_need_a_plan_after_the_second() -> None:
    bench = GateBench()
    motion = {"motion": True}
    for _ in range(2):
        assert isinstance(await bench.review(policy=motion, distance_m=1), Allow)
    blocked = await bench.review(policy=motion, distance_m=1)
    assert isinstance(blocked, Refuse)
    assert not blocked.charged
    assert "create_plan" in blocked.text
    assert "submit_plan" in blocked.text
    assert isinstance(await bench.review("look"), Allow)
    await bench.approved(("move", {"distance_m": 1}), ("move", {"distance_m": 2}))
    assert isinstance(await bench.review(policy=motion, distance_m=3), Refuse)
    assert isinstance(await bench.review("back", policy=motion, distance_m=1), Refuse)
    first = await bench.review(policy=motion, distance_m=1.0)
    assert isinstance(first, Allow)
    assert isinstance(await bench.review(policy=motion, distance_m=1), Refuse)
    first.give_back()
    first.give_back()
    assert isinstance(await bench.review(policy=motion, distance_m=1), Allow)
    assert isinstance(await bench.review(policy=motion, distance_m=1), Refuse)
    assert isinstance(await bench.review(policy=motion, distance_m=2), Allow)


@pytest.mark.parametrize(
    ("most", "why"),
    [
        (0, "because this agent moves the robot by plans only."),
        (1, "because 1 motion of this mission has begun without a plan."),
        (2, "because 2 motions of this mission have begun without a plan."),
    ],
)
@pytest.mark.virtual_time
async def test_a_motion_without_a_plan_is_told_why_it_needs_one(most: int, why: str) -> None:
    bench = GateBench(plan={"motions": most})
    verdicts = [await bench.review(policy={"motion": True}, distance_m=1) for _ in range(most + 1)]
    assert isinstance(verdicts[-1], Refuse)
    assert why in verdicts[-1].text


@pytest.mark.virtual_time
async def test_a_step_of_an_approved_plan_is_asked_about_again_where_the_skill_asks() -> None:
    bench = GateBench(plan={"motions": 0})
    await bench.approved(("move", {"distance_m": 1}))
    policy = {"motion": True, "approval": "ask"}
    reviewing = asyncio.create_task(bench.review(policy=policy, distance_m=1))
    await until(lambda: bool(bench.approvals.pending()))
    bench.approvals.decide(bench.approvals.pending()[0].id, "reject")
    assert isinstance(await reviewing, Refuse)


@pytest.mark.virtual_time
@pytest.mark.parametrize("text", ["draw #\nerase all", "draw  # erase all", "draw # er\u200base all"])
async def test_a_planned_step_is_made_as_it_was_approved(text: str) -> None:
    """Texts that count as the same may mean something else to the skill, a script's lines for instance."""
    bench, seen = GateBench(plan={"motions": 0}), {"text": "draw # erase all"}
    skill = offered("plot", parameters={"type": "object", "properties": {"text": {"type": "string"}}}, motion=True)
    await bench.approved(("plot", seen))
    verdict = await bench.chain.review(request(skill, text=text))
    assert isinstance(verdict, Allow)
    assert verdict.arguments == seen


@pytest.mark.virtual_time
async def test_a_planned_motion_uses_up_no_free_one_and_missions_count_apart() -> None:
    bench = GateBench(plan={"motions": 1})
    motion = offered(parameters=MOVE, motion=True)
    await bench.approved(("move", {"distance_m": 1}))
    assert isinstance(await bench.chain.review(request(motion, distance_m=1)), Allow)
    assert isinstance(await bench.chain.review(request(motion, distance_m=1)), Allow)
    assert isinstance(await bench.chain.review(request(motion, distance_m=1)), Refuse)
    assert isinstance(await bench.chain.review(request(motion, ("m2",), distance_m=1)), Allow)
    free = GateBench(plan={"motions": None})
    for _ in range(9):
        assert isinstance(await free.chain.review(request(motion, distance_m=1)), Allow)


@pytest.mark.virtual_time
async def test_an_approval_of_a_plan_lapses() -> None:
    bench = GateBench(plan={"motions": 0})
    await bench.approved(("move", {"distance_m": 1}))
    await asyncio.sleep(3601)
    assert isinstance(await bench.review(policy={"motion": True}, distance_m=1), Refuse)


@pytest.mark.virtual_time
async def test_an_approval_of_a_plan_lapses_while_the_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = GateBench(plan={"motions": 0})
    await bench.approved(("move", {"distance_m": 1}))
    monkeypatch.setattr(clock, "steady", lambda: clock.monotonic() + 8 * 3600)
    assert isinstance(await bench.review(policy={"motion": True}, distance_m=1), Refuse)


@pytest.mark.virtual_time
async def test_a_plan_whose_mission_ends_with_its_approval_is_void_and_can_be_approved_anew() -> None:
    bench = GateBench()
    plan = bench.plans.create("g", [{"skill": "move", "arguments": {"distance_m": 1}}])
    task = asyncio.create_task(bench.plans.submit(plan.id, ("m",)))
    await asyncio.sleep(0)
    bench.approvals.decide(bench.approvals.pending()[0].id, "approve")
    bench.plans.apply(
        AgentEvent(number=1, utime=0, agent="agent", kind=EventKind.ENDED, missions=("m",))
    )  # before the task that waits wakes up
    assert (await task).state == "void"
    assert bench.plans.claim_step("move", {"distance_m": 1}, ("m",)) is None
    again = asyncio.create_task(bench.plans.submit(plan.id, ("n",)))
    await asyncio.sleep(0)
    bench.approvals.decide(bench.approvals.pending()[0].id, "approve")
    assert (await again).state == "approved"


@pytest.mark.virtual_time
async def test_plans_are_drafts_until_submitted_and_may_be_changed_by_the_operator() -> None:
    bench = GateBench()
    plans, approvals = bench.plans, bench.approvals
    plan = plans.create("g")
    with pytest.raises(SkillError, match="no steps"):
        await plans.submit(plan.id)
    plans.add_steps(plan.id, [{"skill": "move", "arguments": {"distance_m": 1}}])
    with pytest.raises(SkillError, match="step 1"):
        plans.add_steps(plan.id, [{"arguments": {}}])
    task = asyncio.create_task(plans.submit(plan.id))
    await asyncio.sleep(0)
    with pytest.raises(SkillError, match="is submitted"):
        plans.add_steps(plan.id, [{"skill": "move"}])
    (pending,) = approvals.pending()
    with pytest.raises(SkillError, match="needs steps"):
        approvals.amend(pending.id, {"steps": []})
    approvals.decide(pending.id, "approve", {"steps": [{"skill": "move", "arguments": {"distance_m": 0.5}}]})
    assert [step.to_dict() for step in (await task).steps] == [{"skill": "move", "arguments": {"distance_m": 0.5}}]
    rejected = plans.create("h", [{"skill": "move"}])
    task = asyncio.create_task(plans.submit(rejected.id))
    await asyncio.sleep(0)
    approvals.decide(approvals.pending()[0].id, "reject", reason="not today")
    assert "rejected: not today" in (await task).text()
    with pytest.raises(SkillError, match="is rejected, not a draft"):
        await plans.submit(rejected.id)
    with pytest.raises(SkillError, match="did you mean 'plan-1'"):
        plans.get("plan1")


@pytest.mark.parametrize("nobody", ["in time", "dropped", "stops", "no room", "no console", "console lost"])
@pytest.mark.virtual_time
async def test_a_plan_on_which_nobody_has_decided_is_a_draft_again(nobody: str) -> None:
    lost = {"on_console_loss": "abort"} if "console" in nobody else {}
    bench = GateBench(approval={"timeout_s": 10, "max_pending": 1, **lost})
    plans, approvals = bench.plans, bench.approvals
    plan = plans.create("g", [{"skill": "move", "arguments": {"distance_m": 1}}])
    others = asyncio.create_task(approvals.ask("drop", {})) if nobody == "no room" else None
    approvals.console(present=nobody != "no console")
    await asyncio.sleep(0)
    task = asyncio.create_task(plans.submit(plan.id, ("m1",)))
    await asyncio.sleep(0)
    if nobody == "dropped":
        approvals.decide(approvals.pending()[0].id, "delete")
    elif nobody == "stops":
        approvals.close()
    approvals.console(present="console" not in nobody)
    why = (await task).reason
    assert why
    assert (plan.state, plan.text().splitlines()[0]) == ("draft", f"Plan plan-1 (g) is draft: {why}")
    assert not any(view["state"] == "rejected" for view in decided(bench.events))
    if others:
        await others
    approvals.console(present=True)
    again = asyncio.create_task(plans.submit(plan.id, ("m1",)))
    await asyncio.sleep(0)
    assert (plan.state, plan.reason) == ("submitted", "")
    approvals.decide(approvals.pending()[0].id, "approve")
    assert (await again).state == "approved"


def decided(events: Events) -> list[dict[str, Any]]:
    return [data["approval"] for kind, data in events.all if kind == "approval_decided"]


@pytest.mark.virtual_time
async def test_a_zone_needs_a_plan_even_for_the_first_motion() -> None:
    bench = GateBench(zones=[Zone(name="lab", polygon=SQUARE)], plan={"motions": None})
    goal = {"x": 2.0, "y": 2.0}
    blocked = await bench.review("go_to", {"motion": True}, **goal)
    assert isinstance(blocked, Refuse)
    assert "'lab'" in blocked.text
    assert not blocked.charged
    await bench.approved(("go_to", goal))
    assert isinstance(await bench.review("go_to", {"motion": True}, **goal), Allow)
    assert isinstance(await bench.review("go_to", {"motion": True}, **goal), Refuse)
    assert isinstance(await bench.review("go_to", {"motion": True}, x=0, y=0), Allow)


@pytest.mark.virtual_time
async def test_a_goal_in_another_frame_than_the_zones_needs_a_plan_wherever_it_is() -> None:
    on_the_map: dict[str, Any] = {"motion": True, "frame": "map"}
    goal = {"x": 9.0, "y": 9.0}
    without = GateBench(plan={"motions": None})
    assert isinstance(await without.review("navigate_to", on_the_map, **goal), Allow)
    bench = GateBench(zones=[Zone(name="lab", polygon=SQUARE)], plan={"motions": None})
    blocked = await bench.review("navigate_to", on_the_map, **goal)
    assert isinstance(blocked, Refuse)
    assert "its goal is in the frame 'map'" in blocked.text
    assert isinstance(await bench.review("back_up", on_the_map, distance_m=-1), Allow)
    await bench.approved(("navigate_to", goal))
    assert isinstance(await bench.review("navigate_to", on_the_map, **goal), Allow)


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
    assert not matches(rule(n=1), "go", {"n": "1"}, "")
    assert matches(rule(items="*cup*"), "take", {"items": ["a cup"]}, "")

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


@pytest.mark.virtual_time
async def test_users_gates_come_before_plans_and_what_they_change_is_checked() -> None:
    bench = GateBench(gates=[f"{__name__}:Doubling"], plan={"motions": 0})
    await bench.approved(("move", {"distance_m": 2}))
    allowed = await bench.review(policy={"motion": True}, distance_m=1)
    assert isinstance(allowed, Allow)
    assert allowed.arguments == {"distance_m": 2}
    text = await bench.review("say")
    assert isinstance(text, Refuse)
    assert "the gate Doubling failed (KeyError" in text.text


@pytest.mark.virtual_time
async def test_a_gate_that_fails_lets_nothing_pass() -> None:
    verdict = await GateBench(gates=[f"{__name__}:Failing"]).review()
    assert isinstance(verdict, Refuse)
    assert "RuntimeError: a bug" in verdict.text


@pytest.mark.virtual_time
async def test_a_gate_that_fails_right_before_the_call_begins_lets_nothing_pass() -> None:
    verdict = await GateBench(gates=[f"{__name__}:FailingLater"]).review()
    assert isinstance(verdict, Allow)
    refusal = await verdict.last_look()
    assert refusal is not None
    assert "the gate FailingLater failed (StopIteration" in refusal.text


@pytest.mark.virtual_time
async def test_a_gate_in_which_something_was_cancelled_lets_nothing_pass_and_ends_nothing_else() -> None:
    verdict = await GateBench(gates=[f"{__name__}:Cancelled"]).review()
    assert isinstance(verdict, Refuse)
    assert "the gate Cancelled failed (RuntimeError: it ended because something that it awaited was" in verdict.text


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("nonsense", "not of the form"),
        ("no.such.place:Gate", "can't be imported"),
        (f"{__name__}:Doublin", "did you mean 'Doubling'"),
        (f"{__name__}:NotAGate", "no method 'review'"),
        (f"{__name__}:GateBench.x", "not of the form"),
        (f"{__name__}:pytest", "can't be made"),
    ],
)
def test_a_gate_that_can_not_be_loaded_is_named(reference: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        load_gate(reference)


@pytest.mark.feature("B8")
@pytest.mark.virtual_time
async def test_a_sub_mission_has_no_free_motions_of_its_own() -> None:
    bench = GateBench(plan={"motions": 2})
    skill = offered("move", parameters=MOVE, motion=True)
    verdicts = [
        await bench.chain.review(request(skill, (mission,), distance_m=number))
        for number, mission in enumerate(("m1", "m1/1", "m1/2", "m1"))
    ]
    assert [isinstance(verdict, Allow) for verdict in verdicts] == [True, True, False, False]


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
