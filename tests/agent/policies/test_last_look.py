"""What a call may do is decided by the world as it is when the call begins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dimos_streams.agent.policies.gates.base import Allow


class Tide:
    """A permit that an operator takes back while the world is looked at, once."""

    def __init__(self) -> None:
        self.holds = True
        self.done: list[str] = []

    async def wait(self) -> None:
        self.holds = True
        self.done.append("wait")

    async def refresh(self) -> None:
        self.holds = "refresh" in self.done
        self.done.append("refresh")

    def again(self, arguments: Mapping[str, Any]) -> None:
        assert self.holds
        self.done.append("look")


@pytest.mark.virtual_time
async def test_the_last_look_is_at_the_world_as_it_is_once_the_operator_lets_the_call_begin() -> None:
    tide = Tide()
    await Allow({}, again=tide.again, permit=tide, refresh=tide.refresh).last_look()
    assert tide.done == ["wait", "refresh", "wait", "refresh", "look"]
