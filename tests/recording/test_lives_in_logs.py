"""Where a log says that a module's life ends, and that another begins."""

from __future__ import annotations

from typing import Any

import pytest

from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.module import RunContext
from dimos_streams.recording.format import LogEvent
from dimos_streams.regression.module_lives import ModuleLives
from dimos_streams.tool_stream.liveness.heartbeat import ENDED
from dimos_streams.tool_stream.protocol.channels import STATUS
from tests.recording.logs import START

SECOND = 1_000_000
STOPS = "stopping: an operator restarts it"


@pytest.mark.feature("F3")
@pytest.mark.parametrize(
    ("told", "changes"),
    [
        ([("a", 0.0, "ok"), ("a", 0.5, STOPS), ("a", 0.6, STOPS), ("b", 0.7, "ok"), ("b", 0.8, "ok")], [1, 3]),
        ([("a", 0.0, "ok"), ("a", 0.5, STOPS), ("a", 0.6, ENDED), ("b", 0.7, ENDED), ("c", 9.0, "ok")], [1, 4]),
        ([("a", 0.0, "ok"), ("a", 0.5, ENDED), ("a", 0.6, ENDED), ("b", 0.7, "ok"), ("b", 0.9, STOPS)], [1, 3, 4]),
        ([("a", 0.0, "ok"), ("b", 0.5, STOPS), ("a", 0.6, "ok")], []),
        ([("a", 0.0, "ok"), ("b", 9.0, "ok"), ("b", 9.1, STOPS)], [2]),
    ],
    ids=["stopped and started", "ended", "only its end was heard", "another says so", "killed"],
)
def test_a_life_ends_with_its_own_word_and_the_next_begins_with_another_instance(
    told: list[tuple[str, float, str]], changes: list[int]
) -> None:
    host: Any = None
    plan: Any = type("Plan", (), {"spec": type("Spec", (), {"name": "drive"})})
    lives = ModuleLives(host, [plan], RunContext(), [], {})
    found = []
    for number, (instance, at_s, health) in enumerate(told):
        data = encode(ModuleStatus(module="drive", instance=instance, health=health))
        if lives.is_change(LogEvent(number, START + round(at_s * SECOND), STATUS, data, 0)):
            found.append(number)
    assert found == changes
