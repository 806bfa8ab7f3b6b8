"""Who may give orders to an agent gets nothing of what is in the files of the run's user."""

from __future__ import annotations

from pathlib import Path

import pytest

from dimos_streams.errors import SkillError
from tests.agent.policies.brain import Brain
from tests.agent.policies.robot_stage import robot_stage

SECRET = "sk-of-somebody"


@pytest.mark.virtual_time
@pytest.mark.parametrize("content", [SECRET, f"turns: {SECRET}", f"{SECRET}: 1", f"a: [{SECRET}"])
async def test_a_file_that_is_no_script_is_not_shown_to_who_asks_for_it_as_a_model(
    content: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "key").write_text(content)
    async with robot_stage(Brain()) as (made, _):
        call = await made.harness.call("set_model", caller="operator", model=f"scripted:{tmp_path}/key")
        with pytest.raises(SkillError, match=r"is no script of a model; `dimos-streams check .*` says why"):
            await call.result()
        assert not any(SECRET in str(event.to_dict()) for event in call.events)
    assert SECRET not in caplog.text
