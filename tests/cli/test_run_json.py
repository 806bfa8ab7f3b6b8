"""The form in which ``status --json`` writes the state of a run."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from dimos_streams.cli.bridge_client.answers import HubLinkState
from dimos_streams.cli.bridge_client.run_status.state import (
    MachineState,
    ModuleState,
    NoBridge,
    ProcessState,
    UnreachableBridge,
    json_form,
)
from dimos_streams.operator.messages.stop import GoingOn, Stop, StoppedRobots
from dimos_streams.tool_stream.liveness.part_state import ClockOffset
from tests.cli.run_states import BRIDGE, RUN
from tests.runtime.run_records import process_record


def test_a_state_is_written_field_by_field_in_their_order() -> None:
    machine = MachineState(
        name="brain", problem="", clock=ClockOffset(ahead_us=1, within_us=2), modules=(ModuleState(name="agent"),)
    )
    arm = ModuleState(name="arm", health="ok", alive=True, state={"settings": {"speed": 0.5}})
    record = process_record("arm", pid=7, pid_started=8)
    arms = ProcessState(**asdict(record), cpu_s=1.5, memory_bytes=1000)
    (state,) = json_form([replace(RUN, machines=(machine,), processes=(arms,), modules=(arm,))])
    agent: dict[str, Any] = {"name": "agent", "health": "unknown", "alive": None, "state": {}}
    process = {"label": "arm", "modules": ["arm"], "pid": 7, "state": "ready", "restarts": 0}
    assert list(state) == (
        [
            "run_id",
            "blueprint",
            "pid",
            "supervisor",
            "up_s",
            "bus",
            "machine",
            "machines",
            "run_dir",
            "disk",
            "bridge",
            "processes",
            "modules",
        ]
    )
    assert state["machines"] == [
        {"name": "brain", "problem": "", "clock": {"ahead_us": 1, "within_us": 2}, "modules": [agent]}
    ]
    assert list(state["processes"][0].items()) == list(
        {**process, "why": "", "failing": "", "pid_started": 8, "cpu_s": 1.5, "memory_bytes": 1000}.items()
    )
    assert list(state["modules"][0].items()) == [
        ("name", "arm"),
        ("health", "ok"),
        ("alive", True),
        ("state", {"settings": {"speed": 0.5}}),
    ]


def test_of_a_bridge_that_is_not_there_nothing_is_written_that_it_alone_knows() -> None:
    gone = UnreachableBridge(url="http://127.0.0.1:1", problem="refused")
    none, unreachable = json_form([replace(RUN, bridge=NoBridge()), replace(RUN, bridge=gone)])
    assert list(none["bridge"].items()) == [("url", None), ("status", "none")]
    assert list(unreachable["bridge"].items()) == [
        ("url", "http://127.0.0.1:1"),
        ("status", "unreachable"),
        ("problem", "refused"),
    ]


def test_what_a_bridge_answers_is_passed_on_with_fields_that_are_not_known_here() -> None:
    late = GoingOn(call_id="c", skill="wave", module="robot", since_utime=0, text="waving")
    hub = HubLinkState.model_validate(
        {
            "url": "http://hub",
            "robot": "r1",
            "behind": 0,
            "acknowledged": 3,
            "acknowledged_age_s": 1.0,
            "commands": True,
            "trouble": "",
            "newer": [1],
        }
    )
    stopped = StoppedRobots(stops=(Stop(robot="", utime=1),))
    (state,) = json_form([replace(RUN, bridge=replace(BRIDGE, stopped=stopped, not_ending=(late,), hub=hub))])
    bridge = state["bridge"]
    assert " ".join(bridge) == "url status open_calls lost stopped not_ending hub counts"
    assert bridge["stopped"] == stopped.model_dump(mode="json")
    assert bridge["not_ending"] == [late.model_dump(mode="json")]
    assert list(bridge["hub"].items())[-2:] == [
        ("newer", [1]),
        ("text", "http://hub as r1: up to date, last acknowledged 1 s ago"),
    ]
    assert list(bridge["counts"]) == ["offset", "leases", "broadcast", "receiver"]
