"""Tools have names that models' servers take, also where a namespace makes their skills' names longer."""

from __future__ import annotations

from unittest.mock import AsyncMock, Mock

import pytest

from dimos_streams.bridge.mcp.calls import BrokerCalls
from dimos_streams.bridge.mcp.sessions import Session
from dimos_streams.bridge.mcp.tools import McpTools, listed
from dimos_streams.common.names import tool_name
from dimos_streams.module import Module
from dimos_streams.module.run_context import RunContext
from dimos_streams.skill import Call, skill
from tests.agent.policies.gate_inputs import offered
from tests.bridge.scene import closed, scene

NAMESPACE = "warehouse_north_hall_7"
SKILL = f"{NAMESPACE}_count_what_lies_on_the_shelves_of_this_aisle"


class Shelves(Module):
    """A module with a skill of a long name."""

    @skill
    async def count_what_lies_on_the_shelves_of_this_aisle(self) -> str:
        """Count."""
        return "7"


class Errands(Module):
    """A module that begins skills which its caller names, as a lookout does."""

    @skill
    async def begin(self, call: Call, name: str) -> str:
        """Begin one."""
        await call.skills.check(name, {})
        return await call.skills.start(name, {})


@pytest.mark.virtual_time
async def test_a_skill_of_a_long_name_is_a_tool_that_models_servers_take() -> None:
    async with scene() as made:
        await made.add(Shelves(name=f"{NAMESPACE}/shelves", context=RunContext(namespace=f"{NAMESPACE}/")))
        await made.offered(SKILL)
        tools, session = McpTools(BrokerCalls(made.broker), made.broker.ledger.broadcast), Session("1", "mcp/one")
        names = [tool["name"] for tool in listed(tools.skills())]
        assert max(map(len, names)) <= 64 < len(SKILL)
        (name,) = (each for each in names if each.startswith("warehouse"))
        assert name.endswith("_on_the_shelves_of_this_aisle"), "what it does can be read"
        for number, called in enumerate([name, SKILL]):
            call_id, _ = await tools.begin(session, number, called, {})
            assert not made.broker.directory.is_acquainted, "the skill is known: nobody else is waited for"
            assert (await closed(made.broker, call_id)).skill == SKILL
        for wanted in (name, SKILL):
            found = await tools.use_own(session, "list_calls", {"skill": wanted})
            assert found["structuredContent"]["text"].count(SKILL) == 2


@pytest.mark.virtual_time
async def test_a_skill_begins_another_one_by_the_name_that_its_caller_knows() -> None:
    async with scene() as made:
        await made.add(Shelves(name=f"{NAMESPACE}/shelves", context=RunContext(namespace=f"{NAMESPACE}/")))
        await made.add(Errands(name="errands"))
        for name in (SKILL, "begin"):
            await made.offered(name)
        asking = await closed(made.broker, await made.broker.call("begin", {"name": tool_name(SKILL)}, caller="a"))
        assert (await closed(made.broker, asking.result)).skill == SKILL


@pytest.mark.virtual_time
async def test_no_skill_has_the_calls_of_another_one_s_tool_by_being_called_like_it() -> None:
    """At a hub a robot `arm` may offer a skill that, with its name before it, is called like a tool of another robot
    `arm_of_north_hall`."""
    long_name = "arm_of_north_hall_stop_to_count_what_lies_on_the_shelves_of_this_aisle"
    like_it = tool_name(long_name)
    calls = Mock(skills=lambda: [offered(like_it), offered(long_name)], meet=AsyncMock(), has_begun=lambda *_: False)
    calls.begin = AsyncMock(return_value="c1")
    tools, session = McpTools(calls, Mock()), Session("1", "mcp/one")
    names = [tool["name"] for tool in listed(tools.skills())]
    assert len({*names}) == len(names), "servers of models refuse two tools of one name"
    for number, (called, begun) in enumerate([(like_it, long_name), (long_name, long_name), (names[0], like_it)]):
        await tools.begin(session, number, called, {})
        assert calls.begin.await_args.args[0] == begun


class Mimic(Module):
    """A module with a skill that is called like the tool of another one."""

    @skill(name=tool_name(SKILL))
    async def mimic(self) -> str:
        """Do something else."""
        return "mimicked"


@pytest.mark.virtual_time
async def test_a_tool_s_name_means_one_skill_at_every_door() -> None:
    async with scene() as made:
        await made.add(Shelves(name=f"{NAMESPACE}/shelves", context=RunContext(namespace=f"{NAMESPACE}/")))
        await made.add(Mimic(name="mimic"))
        await made.add(Errands(name="errands"))
        mimic = tool_name(SKILL)
        for name in (SKILL, mimic, "begin"):
            await made.offered(name)
        begun = [
            await made.broker.call(mimic, {}, caller="you"),
            (await closed(made.broker, await made.broker.call("begin", {"name": mimic}, caller="you"))).result,
            await made.broker.call(tool_name(mimic), {}, caller="you"),
            await made.broker.call(mimic, {}, caller="mcp/one"),
        ]
        skills = [(await closed(made.broker, call_id)).skill for call_id in begun]
        assert skills == [SKILL, SKILL, mimic, mimic], "a model's call has its skill's own name, as its gates know it"
