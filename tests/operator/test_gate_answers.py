"""The velocity gates' answers to a hold, as their heartbeats have them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from dimos_streams.operator.gate_answers import VelocityGateAnswers
from dimos_streams.operator.holding import GATE
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.module_view import ModuleView

HOLDING: dict[str, dict[str, Any]] = {GATE: {"listens": True, "holds": ["agent"], "still": True}}


class Directory:
    """A directory of one module."""

    def __init__(self, module: ModuleView) -> None:
        self.seen = module

    def reporting(self, topic: str) -> list[ModuleView]:
        return [self.seen] if topic in self.seen.state else []

    def module(self, name: str) -> ModuleView | None:
        return self.seen if name == self.seen.name else None


def test_a_gate_that_says_no_more_that_it_is_one_confirms_nothing_and_its_successor_may_be_none() -> None:
    directory = Directory(ModuleView("gate", "first", 1, "ok", 0.0, (), HOLDING))
    answers = VelocityGateAnswers(cast("ModuleDirectory", directory), "agent", lambda module: True)
    assert answers.view().confirmed
    directory.seen = replace(directory.seen, state={})
    assert [(gate.gate, gate.problem) for gate in answers.view().not_held] == [("gate", "deaf")]
    directory.seen = replace(directory.seen, instance="second")
    assert answers.view().not_held == ()


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"still": False}, "moving"),
        ({"holds": ["somebody"]}, "not_holding"),
        ({"listens": False}, "deaf"),
        ({}, None),
    ],
)
def test_a_gate_holds_once_it_says_so_and_the_base_stands(said: dict[str, Any], problem: str | None) -> None:
    directory = Directory(ModuleView("gate", "first", 1, "ok", 0.0, (), {GATE: HOLDING[GATE] | said}))
    answers = VelocityGateAnswers(cast("ModuleDirectory", directory), "agent", lambda module: True)
    assert [gate.problem for gate in answers.view().not_held] == ([problem] if problem else [])
    assert answers.view().confirmed is (problem is None)


@pytest.mark.parametrize(
    ("channel", "names", "is_concerned"), [("/hold", "/hold", True), ("/hold", "", False), ("", "", False)]
)
def test_a_gate_that_listens_where_the_source_holds_is_concerned(
    channel: str, names: str, is_concerned: bool
) -> None:
    directory = Directory(ModuleView("gate", "first", 1, "ok", 0.0, (), {GATE: HOLDING[GATE] | {"channel": names}}))
    answers = VelocityGateAnswers(cast("ModuleDirectory", directory), "agent", lambda module: False)
    answers.channel = channel
    assert answers.view().held == (("gate",) if is_concerned else ())
    directory.seen = replace(directory.seen, state={})
    assert [gate.problem for gate in answers.view().not_held] == (["deaf"] if is_concerned else [])
