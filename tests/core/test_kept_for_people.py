"""What a test shows of a mission: the conversation, and of one that has failed the command that replays it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dimos_streams.agent.context.entry import Entry
from dimos_streams.errors import UserError
from dimos_streams.testing.kept_recordings import keep_recording
from dimos_streams.testing.mission import MissionRun
from dimos_streams.testing.transcript import Transcript
from dimos_streams.tool_stream.event import ToolEvent


@pytest.mark.feature("B3")
def test_a_gates_note_is_in_the_conversation() -> None:
    answer = Entry(number=1, utime=1, role="tool", text="Moved 1 m", note="a metre at most")
    conversation: Any = SimpleNamespace(entries=(answer,))
    assert Transcript(conversation).contains("a metre at most", role="tool")
    assert Transcript(conversation).text == "tool: a metre at most Moved 1 m"
    with pytest.raises(UserError, match=r"no entry has the role 'tol'; did you mean 'tool'\? \(valid: .*operator"):
        Transcript(conversation).contains("a metre at most", role="tol")


@pytest.mark.feature("F3")
def test_the_replay_of_a_failed_test_leaves_out_what_can_not_be_replayed(tmp_path: Path) -> None:
    run = MissionRun("two-robots", record=tmp_path / "a.lcmlog")
    run.recording.write_bytes(b"")
    for module in ("robot1/agent", "robot1/drive", "bridge", "nobody"):
        opened = ToolEvent(
            utime=1, call_id="c", seq=1, type="open", module=module, skill="move", caller="test", text=""
        )
        run.events.append(opened)
    assert keep_recording(run, tmp_path / "kept", "t", 0).endswith(" --modules robot1/drive")
