"""What an agent is given by name is looked for by `check`, before anything starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from dimos_streams.agent.module import Agent, AgentConfig
from dimos_streams.blueprint import module
from dimos_streams.blueprint.check import check
from dimos_streams.blueprint.load import resolve
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.skill import skill
from tests.blueprint.checked import check_reference
from tests.blueprint.conftest import Write


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("gates", ["no_such_module:Gate"], "gate 'no_such_module:Gate' can't be imported"),
        ("gates", ["nonsense"], "gate 'nonsense' is not of the form 'package.module:Class'"),
        ("model", "opnai:gpt", "there is no model 'opnai:gpt'"),
        ("model", "scripted:none.yaml", "none.yaml"),
        ("stop_when", {"conditions": ["json:nothing"]}, "stop condition 'json:nothing' can't be imported"),
        ("agents", {"scout": {"description": "d", "prompt": "p", "model": "x"}}, "there is no model 'x'"),
    ],
)
def test_what_there_is_not_is_a_problem(setting: str, value: object, said: str) -> None:
    blueprint = resolve("follow-person").configured({f"agent.{setting}": value}, source="test")
    (problem,) = check(blueprint)
    assert problem.text.startswith("module 'agent': ")
    assert said in problem.text


@pytest.mark.parametrize("setting", ["agent.base_url", "detector.vlm.base_url"])
@pytest.mark.parametrize("url", ["localhost:11434", "ftp://x", "http://[", ""])
def test_a_base_url_that_is_none_is_a_problem_of_its_setting(setting: str, url: str) -> None:
    blueprint = resolve("follow-person").configured({setting: url}, source="test")
    (problem,) = check(blueprint)
    said = f"it must be a server's address, 'http://HOST[:PORT][/PATH]' or 'https://…' (given: {url!r})"
    module, _, path = setting.partition(".")
    assert str(problem) == f"test: module {module!r}: {path}: {said}"


@pytest.mark.feature("F5")
@pytest.mark.parametrize(
    ("value", "said"),
    [
        (-1, "it must be more than 0, 'auto' or null (given: -1)"),
        ("soon", "it must be a number, 'auto' or null (given: 'soon')"),
    ],
)
def test_what_a_setting_may_be_instead_is_one_problem(value: object, said: str) -> None:
    blueprint = resolve("follow-person").configured({"agent.limits.deadline_s": value}, source="test")
    assert [str(problem) for problem in check(blueprint)] == [f"test: module 'agent': limits.deadline_s: {said}"]


def warned(**settings: object) -> list[tuple[str, str, str]]:
    blueprint = resolve("agent-openai").configured(
        {f"agent.{name}": value for name, value in settings.items()}, source="here"
    )
    return [(problem.severity, problem.where, problem.text) for problem in check(blueprint)]


@pytest.mark.feature("K5")
def test_entries_that_mean_no_skill_of_the_blueprint_are_warned_of() -> None:
    scout = {"description": "d", "prompt": "p", "skills": ["tag:sensng", "observe"]}
    found = warned(skills=["folow_*", "follow_*", "tag:safe", "!go_back", "say"], agents={"scout": scout})
    assert [(severity, where) for severity, where, _ in found] == [("warning", "here")] * 4
    text = (
        "module 'agent': 'folow_*' in skills means no skill that the agent could get; did you mean 'follow_person'?"
    )
    assert found[0][2] == text
    assert [found[number][2].split("'")[3] for number in (1, 2, 3)] == ["!go_back", "say", "tag:sensng"]
    assert found[3][2].endswith("; did you mean 'sensing'?")


@pytest.mark.feature("B3")
@pytest.mark.parametrize(
    ("skill", "argument", "said"),
    [
        (
            "turn",
            "angle_dg",
            "'angle_dg' in approval.rules is no argument of 'turn', so the rule never counts; did you",
        ),
        ("*", "nothing", "'nothing' in approval.rules is no argument of any skill that the agent could get"),
        ("turn", "angle_deg", ""),
        ("*", "angle_deg", ""),
    ],
)
def test_a_rule_that_never_counts_is_warned_of(skill: str, argument: str, said: str) -> None:
    rule = {"skill": skill, "arguments": {argument: ">30"}, "action": "deny"}
    texts = [text for severity, _, text in warned(approval={"rules": [rule]}) if severity == "warning"]
    assert len(texts) == bool(said)
    assert all(said in text for text in texts)


class Order(BaseModel):
    """What is wanted."""

    model_config = ConfigDict(extra="forbid")

    shelf: str
    boxes: int = 1


class Picker(Module):
    """Takes boxes out of shelves."""

    config: ModuleConfig

    @skill
    async def pick(self, order: Order) -> str:
        """Pick. Args: order: What."""
        return order.shelf


@pytest.mark.feature("B3")
@pytest.mark.parametrize(
    ("patterns", "said"),
    [
        ({"order": {"boxes": ">2"}}, "an object is compared as a whole; write 'ARGUMENT.boxes': '>2' instead"),
        ({"order": {"of": {"boxes": ">2"}}}, "write 'ARGUMENT.of.boxes': '>2' instead"),
        ({"order": [{"boxes": ">2"}]}, "a list is compared as a whole: '>2' in it is no comparison with numbers"),
        ({"order": {"shelf": "B2"}}, "lacks boxes, so the rule never counts; 'order.shelf' is a value within it"),
        ({"order": {"boxes": 2}}, "lacks shelf, so the rule never counts; 'order.boxes' is a value within it"),
        ({"order": {"shelf": "B2", "boxes": 2}}, ""),
        ({"order.boxes": ">2"}, ""),
    ],
)
def test_a_rule_about_a_part_of_an_object_names_it(patterns: dict[str, object], said: str) -> None:
    rule = {"skill": "pick", "arguments": patterns, "action": "deny"}
    picker = resolve("agent-openai").with_modules([module(Picker, name="picker")])
    found = [problem.text for problem in check(picker.configured({"agent.approval.rules": [rule]}, source="here"))]
    assert len(found) == bool(said)
    assert all(said in text for text in found)


@pytest.mark.feature("B3")
@pytest.mark.parametrize("pattern", [">0.5 m", "=>0.5", "<half", "!=red", " > "])
def test_a_pattern_that_only_looks_like_a_comparison_is_an_error(pattern: str) -> None:
    rule = {"skill": "turn", "arguments": {"angle_deg": pattern}, "action": "deny"}
    ((severity, _, text),) = warned(approval={"rules": [rule]})
    assert severity == "error"
    assert f"{pattern!r} is no comparison with numbers, such as '>2', '!=0' or '>=-1 <=1'" in text


@pytest.mark.feature("K5")
def test_an_entry_that_is_none_is_an_error_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    head = "name: x\nmodules:\n  agent:\n    type: dimos_streams.agent.module:Agent\n    config:\n      skills:\n"
    path.write_text(f"{head}      - ok\n      - 'a b'\n")
    (problem,) = check_reference(str(path))[1]
    assert (problem.severity, problem.where) == ("error", f"{path}:8")
    assert "skills.1: an entry is a skill's name, a pattern with * and ?, 'tag:NAME'" in problem.text
    path.write_text(f"{head}      - ok\n      - !drive\n")
    (problem,) = check_reference(str(path))[1]
    assert (problem.severity, problem.where) == ("error", f"{path}:8")


class Crowd(Module):
    """Has as many skills as a model's server takes tools."""

    config: ModuleConfig


def _made(number: int) -> Callable[[Crowd], str]:
    def do_it(self: Crowd) -> str:
        """Do it."""
        return ""

    return skill(name=f"skill_{number}", tags=("many",))(do_it)


for number in range(128):
    setattr(Crowd, f"skill_{number}", _made(number))


@pytest.mark.slow
@pytest.mark.feature("K5")
def test_more_tools_than_a_model_server_takes_are_warned_of() -> None:
    crowded = resolve("agent-openai").with_modules([module(Crowd, name="crowd")])

    def found(**settings: object) -> list[str]:
        changed = crowded.configured({f"agent.{name}": value for name, value in settings.items()}, source="here")
        return [str(problem) for problem in check(changed)]

    (text,) = found()
    assert "warning: module 'agent': the model is offered 1" in text
    assert "and model servers take 128: set `skills`" in text
    assert found(skills=["*", "!tag:many"]) == []
    assert found(**{"limits.tools": 500}) == []
    assert found(model="offline") == []
    (text,) = found(skills=["tag:many"])
    assert "offered 137 tools (128 skills and 9 of the agent's own)" in text


def test_a_server_is_not_asked_for() -> None:
    assert check(resolve("agent-openai")) == []


def test_each_fault_of_a_model_script_is_a_problem_of_its_own(write: Write) -> None:
    """One text of several lines would be shown as one line."""
    name = write("s.yaml", "turns:\n  - cals: []\n  - text: 3\nfoo: 1\n")
    found = Agent.problems(AgentConfig(model=f"scripted:{name}"))
    assert [(fault.path, fault.text) for fault in found] == [
        (("model",), "s.yaml:2: unknown key 'cals' in turn 1; did you mean 'calls'?"),
        (("model",), "s.yaml:3: turn 2.text: it must be a text or a list (given: 3)"),
        (("model",), "s.yaml:4: unknown key 'foo' in the model script"),
    ]
