"""Of several skills of one public name one is listed, and it is the one that is called."""

from __future__ import annotations

import itertools

import pytest

from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.liveness.called_skills import called_skills
from dimos_streams.tool_stream.liveness.module_view import ALIVE_S, ModuleView


def offering(name: str, *skills: str, since: float = 0.0, age_s: float = 0.0) -> ModuleView:
    infos = tuple(SkillInfo(name=each, description=name, parameters={}) for each in skills)
    return ModuleView(name, "i", 1, "ok", age_s, infos, since=since)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_of_one_name_one_is_called_and_the_others_are_shadowed_in_the_order_in_which_they_would_be(
    order: tuple[int, ...],
) -> None:
    modules = [
        offering("a-gone", "drive", "sing", age_s=ALIVE_S + 0.1),
        offering("b-later", "drive", since=2.0),
        offering("c-first", "drive", "stay", since=1.0),
    ]
    called = called_skills([modules[place] for place in order])
    by_name = {each.info.name: each for each in called}
    assert len(by_name) == len(called) == 3
    assert {name: each.module.name for name, each in by_name.items()} == {
        "drive": "c-first", "sing": "a-gone", "stay": "c-first",
    }  # fmt: skip
    assert all(each.info.description == each.module.name for each in called)
    assert [(module.name, info.name) for module, info in by_name["drive"].shadowed] == [
        ("b-later", "drive"), ("a-gone", "drive"),
    ]  # fmt: skip


def test_they_stand_in_the_order_of_modules_and_of_definition() -> None:
    modules = [offering("a", "go", "sing"), offering("b", "go", "stay", since=-1.0)]
    assert [each.info.name for each in called_skills(modules)] == ["sing", "go", "stay"]
