"""Which skills an agent gets by its config: what a list means, and that nothing leads around it."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dimos_streams.agent.config import AgentConfig
from dimos_streams.agent.policies.gates.allowed import AllowedGate
from dimos_streams.agent.policies.gates.matching.skill_names import names_skill
from dimos_streams.agent.policies.gates.settings import GateSettings
from dimos_streams.agent.policies.skill_selection import SkillSelection
from dimos_streams.module import Module
from dimos_streams.skill import Call, skill
from dimos_streams.tool_stream.event import Outcome
from tests.agent.policies.brain import Brain
from tests.agent.policies.gate_inputs import offered
from tests.agent.policies.lookout_world import LookoutWorld, lookout, lookout_world, round_with
from tests.agent.policies.robot_stage import decide, robot_stage
from tests.agent.policies.test_families import Errands, errand
from tests.agent.stage import NoConfig
from tests.helpers import until

pytestmark = pytest.mark.feature("K5")

NAMES = ("go_to", "go_back", "follow_person", "observe", "robot1_go_to", "robot1_arm_wave", "robot2_go_to")
TAGS = {"observe": ("safe", "sensing"), "follow_person": ("motion",), "robot1_go_to": ("motion",)}


def selected(*entries: str, module: str = "agent") -> set[str]:
    selection = SkillSelection(GateSettings(skills=entries).skills, module)
    return {name for name in NAMES if selection.has(offered(name, tags=TAGS.get(name, ())))}


@pytest.mark.parametrize(
    ("entries", "meant"),
    [
        ([], ""),
        (["*"], " ".join(NAMES)),
        (["go_to", "observe"], "go_to observe"),
        (["go_*"], "go_to go_back"),
        (["?o_to"], "go_to"),
        (["tag:safe"], "observe"),
        (["tag:saf", "tag:saf_"], ""),
        (["follow_*", "tag:safe"], "follow_person observe"),
        (["*", "!*go_to", "!tag:safe"], "go_back follow_person robot1_arm_wave"),
        (["!go_back", "go_*"], "go_to"),
        (["go_back", "!go_back"], ""),
        (["/robot1/go_to"], "robot1_go_to"),
        (["/robot1/arm/*"], "robot1_arm_wave"),
        (["/*/go_to"], "robot1_go_to robot2_go_to"),
        (["Go_To", "GO_TO", "g\u043e_to", "\uff47o_to", "go_to_"], ""),
    ],
)
def test_what_entries_mean(entries: list[str], meant: str) -> None:
    assert selected(*entries) == set(meant.split())


@pytest.mark.parametrize(
    ("module", "entries", "meant"),
    [
        ("robot1/agent", ["go_to"], "go_to robot1_go_to"),
        ("robot1/agent", ["/go_to"], "go_to"),
        ("robot1/arm/agent", ["wave", "go_to"], "robot1_arm_wave robot1_go_to go_to"),
        ("robot1/agent", ["*", "!go_to"], "go_back follow_person observe robot1_arm_wave robot2_go_to"),
        ("robot1/agent", ["robot1_go_to"], "robot1_go_to"),
        ("robot2/agent", ["robot1_go_to"], "robot1_go_to"),
    ],
)
def test_names_are_looked_for_where_the_agent_is(module: str, entries: list[str], meant: str) -> None:
    assert selected(*entries, module=module) == set(meant.split())


@pytest.mark.parametrize(
    "entry",
    [
        "", "!", "!!go", "tag:", "tag:Safe", "tag:s*", "Tag:safe", "go to", "go_to\n", " go_to", "go[ab]", "a//b",
        "/", "a/b", "/a/", "*" * 201, "*" * 1000, "go\u200b_to", "\u202ego", "e\u0301", "!tag:", "$go", 3, None, [],
    ],
)  # fmt: skip
def test_an_entry_that_can_mean_nothing_is_an_error_at_its_place(entry: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        AgentConfig.model_validate({"skills": ["go_to", entry]})
    (detail,) = caught.value.errors()
    assert detail["loc"] == ("skills", 1)
    with pytest.raises(ValidationError):
        AgentConfig.model_validate({"agents": {"a": {"description": "", "prompt": "", "skills": [entry]}}})


@pytest.mark.parametrize("skills", ["*", "go_to", None, [*(["go"] * 201)], ["!go"], {"go": True}])
def test_what_is_no_list_of_skills_is_an_error(skills: Any) -> None:
    with pytest.raises(ValidationError):
        AgentConfig.model_validate({"skills": skills})


@pytest.mark.slow
@given(st.lists(st.sampled_from(["*", "go_*", "tag:safe", "observe", "!go_to", "!tag:safe", "!f*"]), max_size=5))
def test_order_and_repetition_do_not_count_and_exceptions_only_take_away(entries: list[str]) -> None:
    if entries and all(entry.startswith("!") for entry in entries):
        return
    meant = selected(*entries)
    assert all(selected(*other) == meant for other in itertools.islice(itertools.permutations(entries), 24))
    assert selected(*entries, *entries) == meant
    assert meant <= selected(*(entry for entry in entries if not entry.startswith("!")))


def test_patterns_that_are_to_take_for_ever_do_not() -> None:
    entries = tuple(f"{'*a' * 99}{number % 10}" for number in range(200))
    selection = SkillSelection(GateSettings(skills=entries).skills, "a/b/c/agent")
    began = time.process_time()
    for number in range(20):
        assert not selection.has(offered("a" * 180 + f"_{number}"))
    assert time.process_time() - began < 5


def test_of_a_name_that_several_modules_offer_each_must_be_allowed() -> None:
    real, false = offered("go_to", tags=("motion",)), offered("go_to", tags=("safe",))
    for entries, both in ((("tag:safe",), False), (("*", "!tag:motion"), False), (("go_to",), True)):
        gate = AllowedGate(SkillSelection(entries), lambda name: [real, false])
        assert gate.allowed(real) is gate.allowed(false) is both


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"skill": "go_to"}, True),
        ({"skill": "robot1_go_to"}, True),
        ({"skill": "/robot1/go_to"}, True),
        ({"what": [{"then": ["Go To "]}]}, True),
        ({"what": {"go_to": {"x": 1}}}, True),
        ({"what": "\uff47\uff4f-TO!"}, True),
        ({"what": "go_to" + " " * 600}, True),
        ({"what": "\n" * 30_000 + "go to"}, True),
        ({"what": "g\u200bo\u00ad_\U000e0020t\u0301\u00f2\ufe0f"}, True),
        ({"what": "g \u3164o\u0436_to"}, True),
        ({"what": "GOTO"}, True),
        ({"what": ""}, False),
        ({"what": "go_to the door" + " " * 600}, False),
        ({"what": "to"}, False),
        ({"what": "go_to the door"}, False),
        ({"what": "robot2_go_to", "x": 1, "y": None}, False),
        ({}, False),
    ],
)
def test_what_names_a_skill(arguments: dict[str, Any], named: bool) -> None:
    known = offered("robot1_go_to").model_copy(update={"module": "robot1/drive"})
    assert names_skill(arguments, known) is named


@pytest.mark.parametrize("text", ["\u0301\u0316" * 10_000, "\ufdfa" * 13_000, "a" * 40_000])
def test_a_long_text_is_soon_looked_through(text: str) -> None:
    began = time.process_time()
    assert not names_skill({"what": text}, offered("go_to"))
    assert time.process_time() - began < 0.2


class Sloppy(Module):
    """Runs what it is told, in its own way."""

    config: NoConfig

    @skill
    async def do(self, call: Call, what: str) -> str:
        """Do something."""
        return str(await call.skills.run(what.strip(" !").lower().replace(" ", "_")))

    @skill
    async def fetch(self, call: Call) -> str:
        """Fetch something."""
        await call.update("on my way")
        await asyncio.sleep(1)
        return str(await call.skills.run("walk", distance_m=1))


async def said(w: LookoutWorld) -> list[str]:
    """The results of what a model has asked for, once its mission is over."""
    await w.closed(await w.say())
    return [entry.text for entry in w.agent.conversation.entries if entry.role == "tool"]


@pytest.mark.virtual_time
@pytest.mark.parametrize("name", ["walk", "Walk", "/walk", "w\u0430lk", "robot_walk", "walk ", "\uff57alk"])
async def test_by_no_name_does_a_model_call_what_the_list_has_not(name: str) -> None:
    brain = Brain([(name, {"distance_m": 1})])
    async with robot_stage(brain, skills=["look", "tag:none", "!walk", "w*"]) as (made, robot):
        await (await made.say("go")).closed()
        assert {"walk", "follow"}.isdisjoint(brain.offered(0))
        assert {"look", "watch", "read_result"} & brain.offered(0) >= {"look", "watch"}
        (answer,) = made.entries("tool")
        assert "is none of your skills" in answer.text or "no skill is called" in answer.text
        assert robot.log_ == []


@pytest.mark.virtual_time
async def test_without_a_list_all_are_there_and_with_an_empty_one_none() -> None:
    brain = Brain("done")
    configs: list[tuple[dict[str, Any], bool]] = [({}, True), ({"skills": []}, False)]
    for config, there in configs:
        async with robot_stage(brain, **config) as (made, _):
            await (await made.say("go")).closed()
            assert ("walk" in brain.offered()) is ("look" in brain.offered()) is there
            assert "elicit" in brain.offered()


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_a_list_holds_for_what_a_lookout_goes_on_with() -> None:
    for ask in (lookout, round_with):
        name = ask("walk")[0][0]
        async with lookout_world(Brain(ask("walk", distance_m=1)), skills=[name]) as w:
            mission = await w.say()
            await w.looking(name)
            w.appear()
            ended = await w.lookout_closed(name)
            assert (ended.outcome, "'walk' is none of your skills" in ended.text) == (Outcome.FAILED, True)
            await w.closed(mission)
            assert w.robot.log_ == []


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    "asked",
    [
        errand("walk", {"distance_m": 1}),
        errand("/walk", {"distance_m": 1}),
        errand("errand", {"skill": "walk", "arguments": {}}),
        [("do", {"what": " WALK!"})],
        [("do", {"what": "walk" + " " * 600})],
    ],
)
async def test_a_skill_that_runs_what_it_is_told_leads_not_around_the_list(asked: Any) -> None:
    async with lookout_world(
        Brain(asked), Errands(name="errands"), Sloppy(name="sloppy"), skills=["errand", "do"]
    ) as w:
        (text,) = await said(w)
        assert "'walk' is none of your skills" in text
        assert w.robot.log_ == []


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_what_a_skill_consists_of_is_its_authors_choice_but_disabled_stays_disabled() -> None:
    configs: list[tuple[dict[str, Any], int]] = [({}, 2), ({"disabled_skills": ["walk"]}, 0)]
    for config, walked in configs:
        async with lookout_world(
            Brain([("tour", {"stops": 2}), ("walk", {})]), Errands(name="errands"), skills=["tour"], **config
        ) as w:
            toured, refused = await said(w)
            assert ("saw 2 stops" if walked else "disabled 'walk'") in toured
            assert refused == "Not run: 'walk' is none of your skills."
            assert w.robot.log_ == ["walk 1"] * walked


@pytest.mark.virtual_time
@pytest.mark.parametrize("known", [True, False])
async def test_where_nobody_knows_what_a_caller_has_named_the_list_counts(known: bool) -> None:
    async with lookout_world(Brain([("fetch", {})]), Sloppy(name="sloppy"), skills=["fetch"]) as w:
        mission = await w.say()
        await w.looking("fetch")
        (call,) = w.agent.core.calls.known.open
        call.arguments_known = known
        await w.closed(mission)
        (fetched,) = await w.views("fetch")
        assert ("none of your skills" in fetched.text) is not known
        assert w.robot.log_ == ["walk 1"] * known


@pytest.mark.virtual_time
async def test_a_sub_agent_gets_of_its_parents_skills_what_its_own_list_has() -> None:
    described = {"description": "helps", "prompt": "helper"}
    agents = {"helper": {**described, "skills": ["*", "!look"]}, "other": {**described, "prompt": "other"}}
    calls: Any = [("walk", {}), ("look", {}), ("drop", {})]
    brain = Brain(
        [("delegate", {"agent": "helper", "task": "go"})],
        [("delegate", {"agent": "other", "task": "go"})],
        helper=[calls],
        other=[calls],
    )
    async with robot_stage(brain, agents=agents, skills=["walk", "look", "delegate"]) as (made, robot):
        await (await made.say("go")).closed()
        skills = {"walk", "look", "drop"}
        assert [skills & brain.offered(number) for number in (1, 4)] == [{"walk"}, {"walk", "look"}]
        refused = [
            event.data["skill"]
            for event in made.agent.core.events.after(0)
            if event.kind == "result" and "none of your skills" in event.data["text"]
        ]
        assert sorted(refused) == ["drop", "drop", "look"]
        assert robot.log_ == ["walk 1", "walk 1"]


@pytest.mark.virtual_time
@pytest.mark.parametrize("skills", [["look_out_for"], ["look_out_for", "walk"]])
async def test_a_sub_agents_list_holds_for_what_goes_on_when_it_has_handed_back(skills: list[str]) -> None:
    brain = Brain(
        [("delegate", {"agent": "scout", "task": "look"})],
        scout=[lookout("walk", distance_m=1), [("hand_back", {"report": "looking"})]],
    )
    agents = {"scout": {"description": "looks", "prompt": "scout", "skills": skills}}
    async with lookout_world(brain, agents=agents) as w:
        mission = await w.say()
        await until(lambda: any("scout: looking" in entry.text for entry in w.agent.conversation.entries))
        w.appear()
        ended = await w.lookout_closed()
        assert ("'walk' is none of your skills" in ended.text) is ("walk" not in skills)
        await w.closed(mission)
        assert w.robot.log_ == ["walk 1"] * ("walk" in skills)


class Double(Module):
    """Offers a skill of the robot's, of which its author says something else."""

    config: NoConfig

    @skill(tags=("unsafe",))
    async def walk(self) -> str:
        """Walk."""
        return "walked"


@pytest.mark.virtual_time
@pytest.mark.parametrize("whose", ["agent", "sub-agent"])
async def test_a_list_is_looked_at_again_when_what_is_offered_changes_while_a_call_waits(whose: str) -> None:
    safe: dict[str, Any] = {"skills": ["*", "!tag:unsafe"]}
    agents = {"helper": {"description": "helps", "prompt": "helper", **(safe if whose == "sub-agent" else {})}}
    brain = Brain([("delegate", {"agent": "helper", "task": "go"})], helper=[[("walk", {})]])
    config: dict[str, Any] = {"agents": agents, **(safe if whose == "agent" else {})}
    async with robot_stage(brain, approval={"rules": [{"skill": "walk"}]}, **config) as (made, robot):
        said = await made.say("go")
        await until(made.agent.core.gate_state.approvals.pending)
        await made.harness.add(Double(name="double"))
        catalog = made.agent.core.catalog
        while len(catalog.all_named("walk")) < 2:
            await catalog.refresh(at_once=True)
            await asyncio.sleep(0.1)
        await decide(made, "approve")
        await said.closed()
        answers = [event.data["text"] for event in made.agent.core.events.after(0) if event.kind == "result"]
        assert answers[0] == "Not run: 'walk' is none of your skills."
        assert robot.log_ == []


@pytest.mark.virtual_time
async def test_no_plan_has_what_the_list_has_not() -> None:
    steps = [{"skill": "walk", "arguments": {}}]
    brain = Brain([("create_plan", {"goal": "away", "steps": steps})])
    async with robot_stage(brain, skills=["look"], plan={"motions": 0}) as (made, _):
        await (await made.say("go")).closed()
        (answer,) = made.entries("tool")
        assert "no skill is called 'walk'" in answer.text


@pytest.mark.virtual_time
async def test_operators_are_free_and_see_what_is_withheld() -> None:
    async with lookout_world(Brain("done"), skills=["look"]) as w:
        await said(w)
        await w.closed(await w.call("walk", distance_m=1))
        assert w.robot.log_ == ["walk 1"]
        enabling = await w.closed(await w.call("set_skill", skill="walk", enabled=True))
        assert "'walk' is not among the agent's skills: the setting `skills`" in enabling.text
        core = w.agent.core
        withheld = core.gate_state.allowed.withheld(core.catalog.offered)
        assert "look" not in withheld
        assert {"walk", "round"} <= set(withheld)
        shown = core.operators.snapshots.take(watched=False)
        assert (shown.withheld_skills, shown.warnings) == (withheld, ())
