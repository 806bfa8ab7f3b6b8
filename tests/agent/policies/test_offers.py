"""Which of a bridge's skills a model is offered, and how often the bridge is asked."""

from __future__ import annotations

import asyncio

import pytest

from dimos_streams.agent.calls.skill_catalog import SkillCatalog
from dimos_streams.errors import SkillError
from dimos_streams.tool_stream.gateway import OfferedSkill
from tests.agent.loop.fake_bridge import FakeBridge


class Listing(FakeBridge):
    """A bridge that lists skills, one of each module, and counts how often."""

    def __init__(self, *modules: str) -> None:
        super().__init__({})
        self.modules = modules
        self.asked = 0
        self.away = False

    async def skills(self) -> list[OfferedSkill]:
        self.asked += 1
        if self.away:
            raise SkillError("the bridge is away")
        return [
            OfferedSkill(name=f"skill of {module}", description="", parameters={}, module=module, available=True)
            for module in self.modules
        ]


@pytest.mark.parametrize(
    ("agent", "offered"),
    [
        ("agent", ["abc", "robot1/agent", "robot1/base", "robot10/base", "robot2/base", "zoo"]),
        ("robot1/agent", ["abc", "agent", "robot1/base", "zoo"]),
        ("robot2/agent", ["abc", "agent", "robot2/base", "zoo"]),
    ],
)
@pytest.mark.virtual_time
async def test_the_skills_of_all_modules_near_an_agent_but_its_own(agent: str, offered: list[str]) -> None:
    bridge = Listing("abc", "agent", "robot1/agent", "robot1/base", "robot10/base", "robot2/base", "zoo")
    catalog = SkillCatalog(bridge, module=agent)
    await catalog.refresh()
    assert sorted(skill.module for skill in catalog.offered.values()) == offered
    assert len(catalog.all) == 7


@pytest.mark.virtual_time
async def test_the_bridge_is_asked_when_the_list_is_old_and_the_last_one_counts_while_it_is_away() -> None:
    bridge = Listing("base")
    catalog = SkillCatalog(bridge, module="agent", fresh_s=0.5)
    for _ in range(3):
        await catalog.refresh()
    await asyncio.sleep(0.4)
    await catalog.refresh()
    assert bridge.asked == 1
    await catalog.refresh(at_once=True)
    assert bridge.asked == 2
    await asyncio.sleep(0.5)
    bridge.away = True
    await catalog.refresh()
    assert (bridge.asked, list(catalog.offered)) == (3, ["skill of base"])
    bridge.away, bridge.modules = False, ("base", "arm")
    await catalog.refresh()
    assert list(catalog.offered) == ["skill of base", "skill of arm"], "what failed is tried again at once"
