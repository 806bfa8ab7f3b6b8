"""What an agent is given by name is looked for by `check`, before anything starts."""

from __future__ import annotations

import pytest

from dimos_streams.blueprint.check import check
from dimos_streams.blueprint.load import resolve


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


def test_a_server_is_not_asked_for() -> None:
    assert check(resolve("agent-openai")) == []
