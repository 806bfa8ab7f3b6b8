"""The pytest plugin, as a user's own tests have it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TESTS = """
from dimos_streams.testing import event

SMALL = {"robot.camera_width": 160, "robot.camera_height": 120}


async def test_a_mission(blueprint_run):
    async with blueprint_run("robot-only", seed=7, settings=SMALL, record="golden/follow.lcmlog") as run:
        call = await run.call("follow_person", description="a person in a red shirt")
        found = await run.until(event("update", skill="follow_person", text="Following", event="found"))
        assert found.call_id == call.id
        await run.sleep(3)
        assert run.topic("/odom").last.header.frame_id == "odom"
        assert run.topic("/odom").count == len(run.topic("/odom").messages) > 60
        assert run.topic("/color_image").last is None
        await run.until(lambda: run.topic("/color_image").last is not None, 2)
        assert 0.5 < run.distance("base_link", "person_red") < 4.0
        call.cancel()
        assert (await call.closed()).outcome == "cancelled"


async def test_lost_messages(blueprint_run, fault_bus):
    async with blueprint_run("robot-only", seed=7, settings=SMALL, faults=fault_bus(loss=0.1, seed=2)) as run:
        await run.until(lambda: run.topic("/odom").count > 100, 10)
        assert run.bus.counts().lost > 20


async def test_an_agent(blueprint_run, scripted_model):
    model = scripted_model({"calls": [{"skill": "turn", "arguments": {"angle_deg": 20}}]}, {"text": "I have turned."})
    async with blueprint_run("follow-person", settings={**SMALL, "agent.model": model}) as run:
        said = await run.say("turn a little")
        await said.result()
        assert run.conversation.contains("I have turned", role="assistant")
        assert run.conversation.contains("turn(")
        assert not run.conversation.contains("follow_person")


async def test_that_fails(blueprint_run):
    async with blueprint_run("robot-only", seed=7, settings=SMALL) as run:
        await run.call("look_out_for", descriptions=["a penguin"])
        await run.until(event("update", text="penguin waddles"), 2)


def test_a_log(replay):
    assert replay("golden/follow.lcmlog", ["follow"]).calls == 1


def test_a_log_that_differs(replay):
    replay("golden/follow.lcmlog", ["follow"], settings={"follow.bearing_gain": 2.2})


def test_a_log_that_is_not_there(replay):
    replay("golden/nothing.lcmlog", ["follow"])
"""


@pytest.mark.feature("F3")
@pytest.mark.timeout(120)
def test_the_plugin(pytester: pytest.Pytester, tmp_path: Path) -> None:
    tests = pytester.makepyfile(test_robot=TESTS).parent
    chosen = ["test_robot.py::test_a_mission", "test_robot.py::test_a_log", "--update-recordings"]
    first = pytester.runpytest_subprocess("-p", "no:cacheprovider", *chosen)
    first.assert_outcomes(passed=2)
    golden = tests / "golden" / "follow.lcmlog"
    assert golden.stat().st_size < 1_000_000
    before = golden.read_bytes()

    second = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-W", "error")
    second.assert_outcomes(passed=4, failed=3)
    text = second.stdout.str()
    assert "event(type='update', text='penguin waddles') did not come within 2 s" in text
    kept = tests / "failed-recordings" / "test_that_fails.lcmlog"
    assert f"dimos-streams replay {kept} --modules lookout" in text
    assert list(kept.parent.iterdir()) == [kept]
    assert "first difference after" in text
    assert f"dimos-streams replay {golden} --modules follow --set follow.bearing_gain=2.2" in text
    assert "there is no recording" in text
    assert golden.read_bytes() == before
    shutil.rmtree(tests / "failed-recordings")
