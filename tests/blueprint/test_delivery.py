"""How a blueprint chooses the delivery of topics."""

from __future__ import annotations

import pytest

from dimos_streams.blueprint import blueprint, include, module
from dimos_streams.blueprint.wiring import deliveries
from dimos_streams.errors import UserError
from dimos_streams.runtime.plan import plan_modules, plan_processes
from dimos_streams.runtime.processes.preparation import prepare
from tests.blueprint import toy_modules
from tests.blueprint.checked import check_reference
from tests.blueprint.conftest import Write

CAMERA = "modules: {camera: {type: 'tests.blueprint.toy_modules:Camera'}}\n"
WALK = (
    "modules: {walk: {type: 'tests.blueprint.toy_modules:Walk', config: {label: you}}}\n"
    "external: [color_image#sensor_msgs.Image]\n"
)


def problems_of(write: Write, text: str) -> list[str]:
    return [str(problem) for problem in check_reference(write("x.yaml", text))[1]]


@pytest.mark.feature("G1")
def test_a_topic_is_below_the_namespace_and_every_process_knows_all(write: Write) -> None:
    inner = write("robot.yaml", CAMERA + "delivery: {color_image: reliable, /map: latest}\n")
    outer = blueprint(
        "two", include(inner, namespace="a"), include(inner, namespace="b"), delivery={"/map": "reliable"}
    )
    assert deliveries(outer) == {"/a/color_image": "reliable", "/b/color_image": "reliable", "/map": "reliable"}
    for process in plan_processes(plan_modules(outer)):
        assert process.delivery == deliveries(outer)
        assert prepare(process, frozenset(), {}).plan.delivery == deliveries(outer), "after a restart, too"


def test_a_choice_that_changes_nothing_is_warned_of(write: Write) -> None:
    assert problems_of(write, CAMERA + "delivery: {color_image: reliable}\n") == []
    (line,) = problems_of(write, CAMERA + "delivery:\n  colour_image: reliable\n")
    assert line.endswith(
        "x.yaml:3: warning: delivery of '/colour_image' changes nothing: no module publishes on it;"
        " did you mean '/color_image'?"
    )


def test_a_velocity_is_never_reliable(write: Write) -> None:
    assert problems_of(write, WALK + "delivery: {cmd_vel: latest}\n") == []
    (line,) = problems_of(write, WALK + "delivery: {cmd_vel: reliable}\n")
    assert "x.yaml:3: delivery of '/cmd_vel' can't be 'reliable': a geometry_msgs.Twist that a link has lost" in line


def test_another_word_is_an_error_that_says_which_there_are(write: Write) -> None:
    (line,) = problems_of(write, CAMERA + "delivery: {color_image: sometimes}\n")
    assert "'reliable'" in line
    assert "'latest'" in line
    with pytest.raises(UserError, match="delivery of 'a' can't be 'sometimes': use one of reliable, latest"):
        blueprint("x", module(toy_modules.Camera), delivery={"a": "sometimes"})  # type: ignore[dict-item]
