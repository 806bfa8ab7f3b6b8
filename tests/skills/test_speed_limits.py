"""No skill is told to drive faster than the velocity gate of its robot lets pass now."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dimos_streams.errors import SettingsError
from dimos_streams.module import Module
from dimos_streams.operator.holding import GATE, VelocityGateState
from dimos_streams.skills.moving.speed_limits import check_against_gate

LIMITED = VelocityGateState(listens=True, still=False, max_speed=0.5, max_turn=1.0).model_dump(mode="json")


def module(config: dict[str, float], gate: str = "robot1/gate", *, alive: bool = True) -> Module:
    """A module of the robot robot1 that has heard of a gate."""
    heard = SimpleNamespace(name=gate, alive=alive, state={GATE: LIMITED})
    directory = SimpleNamespace(reporting=lambda topic: [heard])
    services = SimpleNamespace(get=lambda kind: directory)
    made: Any = SimpleNamespace(
        name="robot1/drive", config=SimpleNamespace(**config), context=SimpleNamespace(services=services)
    )
    return cast(Module, made)


@pytest.mark.parametrize("setting", ["max_speed", "max_turn", "search_turn"])
def test_each_setting_of_a_speed_is_held_to_the_gate(setting: str) -> None:
    with pytest.raises(SettingsError, match=r"is more than velocity gate 'robot1/gate' lets pass"):
        check_against_gate(module({setting: 1.5}), [setting])
    check_against_gate(module({setting: 0.5}), [setting])


def test_other_settings_and_the_gates_of_other_robots_and_one_that_is_gone_limit_nothing() -> None:
    check_against_gate(module({"distance_m": 9.0}), ["distance_m"])
    check_against_gate(module({"max_speed": 9.0}, "robot2/gate"), ["max_speed"])
    check_against_gate(module({"max_speed": 9.0}, alive=False), ["max_speed"])
