"""Motions that begin without a plan are counted by mission, also out of a record."""

from __future__ import annotations

from dimos_streams.agent.policies.gates.motions import FreeMotions
from dimos_streams.operator.messages.agent import AgentEvent
from tests.agent.policies.gate_bench import GateBench
from tests.agent.policies.gate_inputs import Events


def test_of_several_missions_the_one_that_has_begun_most_motions_counts() -> None:
    begun = FreeMotions(Events().emit)
    begun.begin("walk", ["busy", "idle"])
    take_back = begun.begin("walk", ["busy/1"])
    assert [begun.begun(missions) for missions in (["idle"], ["busy"], ["idle", "busy/2"])] == [1, 2, 2]
    take_back()
    assert begun.begun(["busy", "idle"]) == 1


def test_a_motion_that_is_taken_back_in_a_record_without_its_beginning_makes_no_other_one_free() -> None:
    begun = FreeMotions(Events().emit)
    data = {"skill": "walk", "motions": -1}
    begun.restore(AgentEvent(number=1, utime=1, agent="a", kind="free_motion", missions=("m",), data=data))
    assert begun.begun(["m"]) == 0


def test_the_gates_of_a_new_process_know_what_was_begun_without_a_plan_before_it() -> None:
    bench = GateBench()
    told = AgentEvent(
        number=1, utime=1, agent="a", kind="free_motion", missions=("m",), data={"skill": "walk", "motions": 1}
    )
    bench.gate_state.restore([told])
    assert bench.gate_state.free_motions.begun(["m"]) == 1
