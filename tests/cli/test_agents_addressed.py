"""How commands find the agent that is meant, at a bridge and at a hub, where each robot knows its own names only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import pytest
import typer

from dimos_streams.cli.bridge_client.agents import begin_at_agent, find_addressee, find_say
from dimos_streams.cli.bridge_client.operator_commands import CommandGateway, decide, pending
from dimos_streams.cli.commands.of_runs import operator
from dimos_streams.cli.option_groups.bridge_choice import BridgeChoice
from dimos_streams.clock import run_virtual
from dimos_streams.errors import (
    RobotNeededError,
    SkillArgumentError,
    SkillError,
    SkillUnavailableError,
    UnknownAgentError,
    UserError,
)
from dimos_streams.operator.agents import agents_among, choose_agent
from dimos_streams.operator.messages.agent import ApprovalView
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.gateway import CallView, JournalEntry, OfferedSkill

pytestmark = pytest.mark.virtual_time


class Fleet(CommandGateway):
    """A hub with an agent at some of its robots, or a bridge with agents in some namespaces: as each answers
    ``POST /calls``."""

    def __init__(self, with_agent: Sequence[str], without: Sequence[str] = (), *, hub: bool) -> None:
        self.is_hub = hub
        self.begun: list[str] = []
        """The public names of what was begun, here."""
        self.answers: dict[str, list[ApprovalView]] = {}
        """The approvals that wait, by the public name of the skill that lists them."""
        self.says: dict[str, Any] = {}
        """What else such a skill has as its result; of None, it never answers."""
        self.away: set[str] = set()
        self._robots = {**dict.fromkeys(with_agent, True), **dict.fromkeys(without, False)}

    async def skills(self) -> list[OfferedSkill]:
        return [
            OfferedSkill(
                name=f"{robot}_{name}",
                description="",
                parameters={"properties": {"angle_deg": {"type": "number"}}} if name == "turn" else {},
                module=module if self.is_hub else f"{robot}/{module}",
                available=robot not in self.away,
                agent=module == "agent",
                robot=robot if self.is_hub else None,
            )
            for robot, has_agent in self._robots.items()
            for name, module in (("turn", "drive"), ("say", "agent"), ("approvals", "agent"))
            if has_agent or module != "agent"
        ]

    async def begin(self, skill: str, agent: str | None) -> str:
        if agent is not None and not self.is_hub:
            skill = choose_agent(agents_among(await self.skills()), agent).skill(skill)
        elif agent is not None and len(self._robots) > 1:
            raise RobotNeededError(f"{skill!r} could be meant for several robots")
        elif agent is not None:
            (robot,) = self._robots
            if agent not in ("", "agent"):
                raise UnknownAgentError(f"no agent is called {agent!r} (there are: agent)")
            skill = f"{robot}_{skill}"
        self.begun.append(skill)
        return skill

    async def call_to_close(
        self, skill: str, arguments: Mapping[str, Any], *, caller: str, agent: str | None = None, wait_s: float = 30.0
    ) -> CallView:
        begun = await self.begin(skill, agent)
        if self.says.get(begun, begun) is None:
            await asyncio.Event().wait()
        listed = [each.model_dump(mode="json") for each in self.answers.get(begun, [])]
        return CallView(
            call_id="c", skill=begun, module="agent", caller=caller, parent="", arguments={}, state="closed",
            outcome=Outcome.COMPLETED, result=self.says.get(begun, listed),
        )  # fmt: skip

    async def call(self, skill: str, arguments: Mapping[str, Any], **how: Any) -> str:
        raise NotImplementedError

    async def cancel(self, call_id: str, reason: str) -> None:
        raise NotImplementedError

    async def cancel_calls(self, call_ids: Collection[str], reason: str) -> None:
        raise NotImplementedError

    async def calls(self, *, open_only: bool = False) -> list[CallView]:
        raise NotImplementedError

    async def offset(self) -> int:
        raise NotImplementedError

    async def robot_orders(self) -> Mapping[str, int]:
        raise NotImplementedError

    def events(
        self, *, after: int, caller: str | None = None, call_id: str | None = None
    ) -> AsyncIterator[JournalEntry]:
        raise NotImplementedError


def approval(id: str) -> ApprovalView:
    return ApprovalView(
        id=id, agent="agent", skill="turn", module="drive", arguments={"angle_deg": 5}, created_utime=1
    )


@pytest.mark.parametrize(
    ("robots", "without", "agent"),
    [
        (["robot1"], ["robot2"], ""),
        (["robot1"], ["robot2"], "robot1"),
        (["robot1"], ["robot2"], "robot1_say"),
        (["robot1", "robot2"], [], "robot1/agent"),
        (["robot1"], [], ""),
        (["robot1"], [], "robot1"),
        (["robot1"], [], "agent"),
    ],
)
async def test_a_hub_s_agent_is_found_by_its_robot(robots: list[str], without: list[str], agent: str) -> None:
    hub = Fleet(robots, without, hub=True)
    assert await begin_at_agent(hub, agent, "say", hub.begin) == "robot1_say"
    assert hub.begun == ["robot1_say"]


@pytest.mark.parametrize("hub", [True, False])
async def test_who_is_meant_has_to_be_said_as_at_a_bridge(hub: bool) -> None:
    fleet = Fleet(["robot1", "robot2"], ["robot3"], hub=hub)
    with pytest.raises(
        UnknownAgentError, match=r"^several agents may be meant; name one of them: robot1/agent, robot2/"
    ):
        await begin_at_agent(fleet, "", "say", fleet.begin)
    with pytest.raises(UnknownAgentError, match=r"^no agent is called 'robot3'.* \(there are: robot1/agent, robot2/"):
        await begin_at_agent(fleet, "robot3", "say", fleet.begin)
    assert fleet.begun == []


async def test_where_no_robot_of_a_hub_has_an_agent_no_run_is_spoken_of() -> None:
    hub = Fleet([], ["robot2", "robot1"], hub=True)
    none = r"^no agent is here: no robot has one \(robot1, robot2\)$"
    for wanted in ("", "robot1"):
        with pytest.raises(UnknownAgentError, match=none):
            await begin_at_agent(hub, wanted, "say", hub.begin)
    for asking in (pending(hub), find_say(hub)):
        with pytest.raises(UnknownAgentError, match=none):
            await asking


@pytest.mark.parametrize(
    ("agents", "without", "hub", "text", "to", "told"),
    [
        (["robot1", "robot2"], [], False, "robot2: stop", "robot2", "robot2: stop"),
        (["robot1", "robot2"], [], True, "robot2: stop", "robot2", "stop"),
        (["robot1"], ["robot2"], True, "robot1:  move 1", "robot1", "move 1"),
        (["robot1"], [], True, "robot1: move 1", "robot1", "move 1"),
        (["robot1"], ["robot2"], True, "robot2: move 1", "robot2", "move 1"),
        (["robot1"], [], True, "hint: it is red", "", "hint: it is red"),
        (["robot1"], [], False, "robot1: move 1", "", "robot1: move 1"),
        (["robot1"], ["robot2"], True, "move 1", "", "move 1"),
    ],
)
async def test_a_robot_is_not_told_the_name_that_only_its_hub_knows(
    agents: list[str], without: list[str], hub: bool, text: str, to: str, told: str
) -> None:
    assert await find_addressee(Fleet(agents, without, hub=hub), text) == (to, told)


async def test_a_stop_is_said_as_it_stands_where_nobody_says_who_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unavailable(self: Fleet) -> list[OfferedSkill]:
        raise SkillUnavailableError("the hub's database is down")

    monkeypatch.setattr(Fleet, "skills", unavailable)
    assert await find_addressee(Fleet(["robot1"], hub=True), "robot1: stop") == ("", "robot1: stop")


async def test_what_is_said_to_a_robot_without_an_agent_goes_to_no_other_one() -> None:
    with pytest.raises(UnknownAgentError, match=r"^no agent is called 'robot2' \(there are: robot1/agent\)$"):
        await find_say(Fleet(["robot1"], ["robot2"], hub=True), "robot2")


async def test_approvals_of_a_whole_fleet_are_decided_where_they_wait(capsys: pytest.CaptureFixture[str]) -> None:
    hub = Fleet(["robot1", "robot2", "robot3"], hub=True)
    hub.answers = {"robot1_approvals": [approval("a1")], "robot2_approvals": [approval("b2")]}
    hub.away = {"robot3"}
    found = [(view.id, view.agent, view.skill) for view in await pending(hub)]
    assert found == [("a1", "robot1/agent", "robot1_turn"), ("b2", "robot2/agent", "robot2_turn")]
    assert capsys.readouterr().err == "agent 'robot3/agent' is not there, and what waits at it is not known\n"
    assert [view.id for view in await pending(hub, "robot2")] == ["b2"]
    hub.begun.clear()
    await decide(hub, "b2", "approve", changes=["angle_deg=7"])
    assert hub.begun[-1] == "robot2_decide"
    with pytest.raises(SkillArgumentError, match="skill 'robot2_turn'"):
        await decide(hub, "b2", "approve", changes=["angle_deg=far"])
    for arguments in ('{"angle_deg": 8}', "{}"):
        decided = await decide(hub, "b2", "approve", changes_json=arguments)
        assert decided.text.split("\n")[0].endswith(f" with {arguments}")
    with pytest.raises(UserError, match=r"^--args-json '8' is not a JSON object$"):
        await decide(hub, "b2", "approve", changes_json="8")


async def test_a_robot_names_no_approval_as_another_robot_s(capsys: pytest.CaptureFixture[str]) -> None:
    hub = Fleet(["robot1", "robot2"], hub=True)
    forged = approval("b2").model_copy(update={"agent": "robot1/agent", "skill": "robot1_turn"})
    hub.answers = {"robot1_approvals": [approval("a1")], "robot2_approvals": [forged]}
    assert [view.agent for view in await pending(hub)] == ["robot1/agent", "robot2/agent"]
    await decide(hub, "b2", "approve")
    assert hub.begun[-1] == "robot2_decide"
    hub.answers["robot2_approvals"] = [approval("a1")]
    with pytest.raises(UserError, match=r"^several .* 'a1': a1@1 of robot1/agent, a1@1 of robot2/agent$"):
        await decide(hub, "a1", "approve")


async def test_what_a_robot_says_of_an_approval_is_no_line_of_its_decision() -> None:
    hub, forged = Fleet(["robot1"], hub=True), "turn\n    2. stop()"
    steps = [{"skill": forged, "arguments": {}}]
    handed_in = {"plan": "p", "goal": "g", "steps": steps}
    plan = {"id": f"b2{forged}", "skill": "submit_plan", "module": "", "arguments": handed_in}
    hub.answers = {"robot1_approvals": [approval("b2").model_copy(update=plan)]}
    decided = (await decide(hub, "b2", "approve")).text.split("\n")
    assert [line.partition("turn")[0] for line in decided] == ["robot1_submit_plan [b2", "    1. ", "    goal: 'g'"]
    like_one = {**plan, "skill": forged, "arguments": {**handed_in, "goal": forged * 5}}
    hub.answers = {"robot1_approvals": [approval("b2").model_copy(update=like_one)]}
    decided = (await decide(hub, "b2", "approve")).text.split("\n")
    assert [line.partition("=")[0] for line in decided[1:]] == ["    plan", "    goal", "    steps"]
    assert decided[0].startswith("robot1_turn")
    late = {"state": "rejected", "decided_by": "cli", "why": forged}
    hub.answers = {"robot1_approvals": [approval("b2").model_copy(update=late)]}
    assert "\n" not in (await decide(hub, "b2", "reject")).text


@pytest.mark.parametrize(
    "said", [None, {"x": 1}, [1, None], 5], ids=["nothing", "an object", "no approvals", "a number"]
)
async def test_a_robot_that_does_not_say_what_waits_keeps_nobody_from_deciding_on_others(
    said: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    hub = Fleet(["robot1", "robot2"], hub=True)
    hub.answers, hub.says = {"robot2_approvals": [approval("b2")]}, {"robot1_approvals": said}
    assert [view.id for view in await pending(hub)] == ["b2"]
    assert capsys.readouterr().err.startswith("what waits at agent 'robot1/agent' is not known: agent 'robot1/agent'")
    await decide(hub, "b2", "approve")
    assert hub.begun[-1] == "robot2_decide"
    with pytest.raises(SkillError, match=r"^agent 'robot1/agent'"):
        await pending(hub, "robot1")


@pytest.mark.parametrize(("said", "code"), [([], 0), (5, 1)], ids=["nothing waits", "no approvals"])
def test_a_list_of_approvals_that_lacks_an_agent_s_is_no_success(
    said: Any, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hub = Fleet(["robot1", "robot2"], hub=True)
    hub.answers, hub.says = {"robot2_approvals": [approval("b2")]}, {"robot1_approvals": said}
    monkeypatch.setattr(operator, "_at_agent", lambda work, bridge: run_virtual(work(hub)))
    with pytest.raises(typer.Exit) if code else nullcontext() as caught:
        operator.approvals(chosen=operator.OperatorOptions(bridge=BridgeChoice(), as_json=True))
    assert getattr(caught, "value", typer.Exit(0)).exit_code == code
    assert [view["id"] for view in json.loads(capsys.readouterr().out)] == ["b2"]


async def test_a_robot_of_many_agents_is_asked_about_its_second_one_after_all_others() -> None:
    many = [f"a/n{number}" for number in range(40)]
    hub = Fleet([*many, "b"], hub=True)
    await pending(hub)
    assert set(hub.begun[:2]) == {"a_n0_approvals", "b_approvals"}
