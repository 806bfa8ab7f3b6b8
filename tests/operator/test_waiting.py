"""What waits for an operator at an agent is said by its module's state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dimos_streams.operator.messages.waiting import Waiting, waiting_lines
from tests.agent.stage import calling, script, stage
from tests.helpers import until


@pytest.mark.feature("C5")
@pytest.mark.virtual_time
async def test_an_approval_that_waits_is_in_the_agents_state(tmp_path: Path) -> None:
    config = {
        **script(tmp_path / "turns.json", calling("move", distance_m=1)),
        "approval": {"rules": [{"skill": "*"}]},
    }
    async with stage(config) as made:
        await made.say("go")
        await until(lambda: "approvals" in made.agent.state_json)
        assert '"agent":{"approvals":1}' in made.agent.state_json


@pytest.mark.feature("C5")
@pytest.mark.virtual_time
async def test_a_question_of_the_model_is_in_the_agents_state_until_it_is_answered(tmp_path: Path) -> None:
    asks = calling("elicit", question="Which room?")
    async with stage(script(tmp_path / "turns.json", asks, {"text": "To the kitchen then."})) as made:
        await made.say("go")
        await until(lambda: '"agent":{"question":"Which room?"}' in made.agent.state_json)
        await made.say("the kitchen")
        await until(lambda: "question" not in made.agent.state_json)


def test_nobody_has_to_do_anything_for_an_agent_that_runs() -> None:
    assert Waiting().state() == {}
    assert list(waiting_lines("agent", {})) == []


@pytest.mark.parametrize(
    ("said", "lines"),
    [
        ({"mode": "stepping"}, ["STEPPING a: each call waits for `step`, until `step off`"]),
        (
            {"mode": "paused", "approvals": 2},
            ["PAUSED a, until `resume`", "WAITING a: 2 calls wait for a decision; `approvals` lists them"],
        ),
        (
            {"mode": "paused", "paused_for": "wet floor (by 'ann')"},
            ["PAUSED a, until `resume`: wet floor (by 'ann')"],
        ),
        ({"question": "Where?"}, ["WAITING a: for the answer to 'Where?'; `say` gives it"]),
        ({"mode": "flying"}, []),
        ("paused", []),
    ],
)
def test_each_line_names_the_command_that_goes_on(said: Any, lines: list[str]) -> None:
    assert list(waiting_lines("a", {"agent": said})) == lines
