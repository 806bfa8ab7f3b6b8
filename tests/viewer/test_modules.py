"""Modules of a recording."""

from __future__ import annotations

import json

from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.liveness.skill_fragments import described
from dimos_streams.viewer.state.modules import Modules

START = 1_600_000_000_000_000
MANY = tuple(
    SkillInfo(name=f"skill_{number}", description="x" * 5000, parameters={"type": "object"}) for number in range(20)
)


def _status(skills_json: str = "", state_json: str = "") -> ModuleStatus:
    return ModuleStatus(
        module="m", instance="i", health="ok", skills_version="1", skills_json=skills_json, state_json=state_json
    )


def test_skills_that_come_in_parts_are_whole_whichever_moment_is_kept_between_them() -> None:
    parts = described("m", MANY)
    assert len(parts) > 1
    for kept in range(len(parts) + 1):
        modules = Modules()
        for number, part in enumerate(parts):
            modules = modules.copy() if number == kept else modules
            modules.take(START + number, _status(part))
        (view,) = modules.views(START + 10)
        assert [info.name for info in view.skills] == [info.name for info in MANY]


def test_a_skill_with_a_name_that_none_can_have_is_left_out() -> None:
    skill = {"name": "go", "description": "", "parameters": {}}
    modules = Modules()
    modules.take(START, _status(json.dumps([{**skill, "name": "go\napproved"}, skill])))
    assert [info.name for info in modules.views(START)[0].skills] == ["go"]
    assert modules.unreadable == 1


def test_what_is_silent_is_gone_and_what_a_copy_hears_is_its_own() -> None:
    modules = Modules()
    modules.take(START, _status("[]", state_json='{"a": 1}'))
    later = modules.copy()
    later.take(START + 5_000_000, _status(state_json='{"a": 2}'))
    (before,), (after,) = modules.views(START + 5_000_000), later.views(START + 5_000_000)
    assert (before.alive, before.health, before.state) == (False, "gone: silent for 5.0 s", {"a": 1})
    assert (after.alive, after.health, after.state) == (True, "ok", {"a": 2})


def test_what_somebody_else_says_of_a_module_holds_for_a_while() -> None:
    modules = Modules()
    modules.take(START, _status("[]"))
    modules.take(START + 1_000, ModuleStatus(module="m", health="hung: 2 s"))
    assert modules.views(START + 2_000)[0].health == "hung: 2 s"
    modules.take(START + 300_000, _status())
    assert modules.views(START + 300_001)[0].health == "ok"
    modules.take(START + 300_002, _status("no JSON", state_json="no JSON"))
    assert modules.unreadable == 2


def test_the_skills_of_a_module_whose_new_list_can_not_be_read_are_those_of_before() -> None:
    modules = Modules()
    modules.take(START, _status(json.dumps([{"name": "go", "description": "", "parameters": {}}])))
    modules.take(START + 1, _status("no JSON"))
    assert [info.name for info in modules.views(START + 1)[0].skills] == ["go"]


def test_what_somebody_else_said_of_a_module_is_forgotten_with_time() -> None:
    modules = Modules()
    modules.take(START, _status("[]"))
    modules.take(START + 1_000, ModuleStatus(module="m", health="hung: 2 s"))
    assert modules.views(START + 2_000_000)[0].health == "gone: silent for 2.0 s"
