"""The pytest plugin, as a user's own tests have it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import numpy  # noqa: F401  A session within this process forgets what it has imported, and numpy can't be imported twice.
import pytest

from dimos_streams import clock
from dimos_streams.blueprint import BlueprintError, blueprint, module
from dimos_streams.blueprint.check import check
from dimos_streams.blueprint.model import ModuleSpec
from dimos_streams.errors import ModuleFailedError, UserError
from dimos_streams.regression.replay import ReplayOptions
from dimos_streams.regression.replay import replay as replay_log
from dimos_streams.regression.report import Report
from dimos_streams.regression.tolerances import Tolerances, load_tolerances
from dimos_streams.testing import MissionRun, event
from tests.helpers import NO_OTHER_PLUGINS
from tests.recording.modules import Breaks

pytestmark = pytest.mark.slow

pytest_plugins = ["pytester"]

AS_USERS = ("-p", "no:cacheprovider", *NO_OTHER_PLUGINS)

SMALL = {"robot.camera_width": 160, "robot.camera_height": 120}
TESTS = """
from dimos_streams.regression.tolerances import Tolerances
from dimos_streams.testing import event

SMALL = {"robot.camera_width": 160, "robot.camera_height": 120}


async def test_a_mission(blueprint_run):
    async with blueprint_run("robot-only", seed=7, settings=SMALL, record="golden/follow.lcmlog") as run:
        call = await run.call("follow_person", description="a person in a red shirt")
        found = await run.until(event("update", skill="follow_person", text="Following", event="found"))
        assert found.call_id == call.id
        await run.sleep(1)
        assert run.topic("/odom").last.header.frame_id == "odom"
        assert run.topic("/odom").count == len(run.topic("/odom").messages) > 30
        assert run.topic("/color_image").last is None
        await run.until(lambda: run.topic("/color_image").last is not None, 2)
        assert 0.5 < run.distance("base_link", "person_red") < 4.0
        call.cancel()
        assert (await call.closed()).outcome == "cancelled"


async def test_lost_messages(blueprint_run, fault_bus):
    async with blueprint_run("base-robot", seed=7, settings=SMALL, faults=fault_bus(loss=0.1, seed=2)) as run:
        await run.until(lambda: run.topic("/odom").count > 30, 10)
        assert run.bus.counts().lost > 10


async def test_an_agent(blueprint_run, scripted_model):
    model = scripted_model({"calls": [{"skill": "turn", "arguments": {"angle_deg": 5}}]}, {"text": "I have turned."})
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
    tolerances = Tolerances(time_s=0.001)
    changed = replay("golden/follow.lcmlog", ["follow"], tolerances=tolerances, settings={"follow.max_speed": 0.2})
    assert changed.updated
    assert changed.tolerances == tolerances


def test_a_log_that_is_not_there(replay):
    replay("golden/nothing.lcmlog", ["follow"])
"""


@pytest.mark.feature("F3")
@pytest.mark.timeout(120)
def test_the_plugin(pytester: pytest.Pytester) -> None:
    tests = pytester.makepyfile(test_robot=TESTS).parent
    run = pytester.runpytest_subprocess(*AS_USERS, "-W", "error", "--update-recordings")
    run.assert_outcomes(passed=5, failed=2)
    assert (tests / "golden" / "follow.lcmlog").stat().st_size < 1_000_000
    text = run.stdout.str()
    assert "event(type='update', text='penguin waddles') did not come within 2 s" in text
    kept = tests / "failed-recordings" / "test_that_fails.lcmlog"
    assert f"dimos-streams replay {kept} --modules lookout" in text
    page = kept.with_suffix(".html")
    assert f"what happened is shown in {page}" in text
    assert "look_out_for" in page.read_text()
    assert sorted(kept.parent.iterdir()) == [page, kept]
    assert "there is no recording" in text
    written = text.partition("recordings written anew")[2]
    log = tests / "golden" / "follow.lcmlog"
    assert f"{log} is of the run in test_a_mission\n" in written
    assert "setting follow.max_speed: recorded 1.0, replayed 0.2\n" in written
    assert f"{log} has what the modules give now\n" in written
    report = replay_log(kept, ReplayOptions(modules=("lookout",)))
    assert report.passed, "the printed command works"


def test_pytest_compiles_the_package_no_second_time(pytestconfig: pytest.Config) -> None:
    hook: object = pytestconfig.pluginmanager.rewrite_hook
    assert clock.__loader__ is not hook


Replay = Callable[..., Report]


@pytest.mark.parametrize("blueprint", ["two-walls.yaml", Path("two-walls.yaml")])
def test_a_blueprint_of_a_replay_is_found_beside_the_test_and_named_in_the_command(
    replay: Replay, mission_log: Path, tmp_path: Path, request: pytest.FixtureRequest, blueprint: str | Path
) -> None:
    request.node.path = tmp_path / "test_robot.py"
    (tmp_path / "two-walls.yaml").write_text("include: [robot-only]")
    assert replay(mission_log, ["follow"], blueprint=blueprint).passed
    with pytest.raises(pytest.fail.Exception) as failed:
        replay(mission_log, ["follow"], blueprint=blueprint, settings={"follow.max_speed": 0.2})
    named = shlex.quote(str(tmp_path / "two-walls.yaml"))
    assert f"--blueprint {named} --set follow.max_speed=0.2" in str(failed.value)


def test_the_command_of_a_replay_has_the_tests_tolerances_and_seed(
    replay: Replay, mission_log: Path, tmp_path: Path
) -> None:
    tolerances = Tolerances(time_s=0.05, absolute=1e-6, fields={"/skill_vel:angular.z": 0.1})
    with pytest.raises(pytest.fail.Exception, match=r"--tolerances tolerances\.yaml") as failed:
        replay(mission_log, ["follow"], tolerances=tolerances, settings={"follow.max_speed": 0.2}, seed=5)
    assert " --seed 5 --set" in str(failed.value)
    path = tmp_path / "tolerances.yaml"
    path.write_text(str(failed.value.msg).rpartition("tolerances.yaml: ")[2])
    assert load_tolerances(path) == tolerances


def test_one_module_alone_is_told_to_be_a_list(replay: Replay, mission_log: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"modules are a list of names: replay\(.*, \['follow'\]\)"):
        replay(mission_log, "follow")


MISMARKED = """
import pytest

@pytest.mark.virtual_time(limit=10)
async def test_named():
    pass

@pytest.mark.virtual_time(10)
async def test_placed():
    pass

@pytest.mark.virtual_time(limit_s=-1)
async def test_negative():
    pass

@pytest.mark.virtual_time(limit_s=10)
async def test_right():
    pass
"""


def test_arguments_that_the_mark_does_not_have_fail_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_marks=MISMARKED)
    run = pytester.runpytest_subprocess(*AS_USERS, "-W", "error")
    run.assert_outcomes(passed=1, failed=3)
    run.stdout.fnmatch_lines("virtual_time(limit_s=-1): it must be a number of seconds, more than 0")
    for given in ("limit", "10"):
        assert f"virtual_time takes no argument {given} (valid: limit_s=SECONDS)" in run.stdout.str()


UNMARKED = """
async def test_unmarked():
    pass
"""
RUNNER = """
import asyncio

def pytest_pyfunc_call(pyfuncitem):
    asyncio.run(pyfuncitem.obj())
    return True
"""


def test_a_coroutine_that_nothing_runs_is_told_of_the_mark(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_unmarked=UNMARKED)
    run = pytester.runpytest_subprocess(*AS_USERS)
    run.assert_outcomes(failed=1)
    run.stdout.fnmatch_lines("test_unmarked is `async def`: add `@pytest.mark.virtual_time`*")
    run.stdout.no_fnmatch_line("*natively supported*")


def test_a_coroutine_that_somebody_else_runs_needs_no_mark(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_unmarked=UNMARKED)
    pytester.makeconftest(RUNNER)
    pytester.runpytest_subprocess(*AS_USERS, "-W", "error").assert_outcomes(passed=1)


ASTRAY = """
async def test_astray(blueprint_run):
    async with blueprint_run("../bedz.yaml"):
        pass
"""


def test_a_blueprint_that_is_nowhere_is_told_with_where_it_was_looked_for(pytester: pytest.Pytester) -> None:
    pytester.mkdir("tests").joinpath("test_astray.py").write_text(ASTRAY)
    pytester.path.joinpath("beds.yaml").write_text("name: beds")
    run = pytester.runpytest_subprocess(*AS_USERS)
    run.assert_outcomes(failed=1)
    outside = pytester.path.parent / "bedz.yaml"
    why = f"there is no blueprint file 'bedz.yaml' or '{outside}'; did you mean '../beds.yaml'?"
    assert f"UserError: {why}" in run.stdout.str()
    run.stdout.no_fnmatch_line("*pytest_plugin.py*")


DEAF = """
import pytest

from dimos_streams.testing import ModuleHarness
from tests.runtime.modules import DeafAtWork

@pytest.mark.virtual_time
async def test_deaf():
    async with ModuleHarness(DeafAtWork) as harness:
        assert await (await harness.call("patrol")).answer() == "patrolling"

async def test_deaf_in_a_run(blueprint_run):
    async with blueprint_run("deaf.yaml") as run:
        await run.call("patrol")

def test_behind_them():
    import gc
    gc.collect()
"""


@pytest.mark.slow
def test_a_skill_that_swallows_its_cancellation_fails_its_test_and_no_other(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    modules = "deaf: {type: tests.runtime.modules:DeafAtWork}, bridge: {type: dimos_streams.bridge.module:Bridge}"
    (pytester.path / "deaf.yaml").write_text(f"modules: {{{modules}}}")
    pytester.makepyfile(test_deaf=DEAF)
    run = pytester.runpytest_subprocess(*AS_USERS, "-W", "error", timeout=50)
    run.assert_outcomes(passed=1, failed=2)
    assert run.stdout.str().count("still at work 60 s after it was cancelled") >= 2
    run.stdout.re_match_lines(
        [r".*  patrol:test-1: await asyncio\.sleep\(0\.5\)", r".*  deaf:run: await asyncio\.sleep"]
    )


UNWRITABLE = """
async def test_beside_it(blueprint_run):
    async with blueprint_run("calm.yaml", record="golden/calm.lcmlog") as run:
        await run.sleep(0.1)


async def test_that_fails(blueprint_run):
    async with blueprint_run("calm.yaml") as run:
        assert run is None


def test_behind_them():
    pass
"""


def test_a_place_that_can_not_be_written_ends_no_session(pytester: pytest.Pytester) -> None:
    folder = pytester.mkpydir("inner")
    (folder / "test_calm.py").write_text(UNWRITABLE)
    (folder / "calm.yaml").write_text("include: [robot-only]\n")
    (folder / "golden").write_text("no folder")
    (pytester.path / "failed-recordings").write_text("no folder")
    run = pytester.runpytest_subprocess(*AS_USERS, "--update-recordings", "inner")
    run.assert_outcomes(passed=1, failed=2)
    text = run.stdout.str()
    assert f"the recording can't be written to {folder}/golden/calm.lcmlog: File exists" in text
    assert f"the recording can't be written to {pytester.path}/failed-recordings/test_that_fails.lcmlog" in text


STUCK = """
import asyncio
import pytest


@pytest.mark.virtual_time(limit_s=20)
async def test_that_waits_for_ever(blueprint_run):
    async with blueprint_run("robot-only") as run:
        await asyncio.Event().wait()
"""


def test_one_that_waits_for_ever_ends_and_says_who_waits(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_stuck=STUCK)
    run = pytester.runpytest_subprocess(*AS_USERS)
    run.assert_outcomes(failed=1)
    text = run.stdout.str()
    assert "s of virtual time are over; who waits:" in text
    assert "await asyncio.Event().wait()" in text


def test_a_log_that_differs(mission_log: Path, replay: Callable[..., Report]) -> None:
    with pytest.raises(pytest.fail.Exception) as failure:
        replay(mission_log, ["follow"], settings={"follow.bearing_gain": 2.2})
    text = str(failure.value)
    assert "first difference after" in text
    log = shlex.quote(str(mission_log))
    assert f"dimos-streams replay {log} --modules follow --set follow.bearing_gain=2.2" in text


@pytest.mark.feature("F3")
async def test_the_topics_of_calls_are_known_before_the_first_event(blueprint_run: Callable[..., MissionRun]) -> None:
    async with blueprint_run("robot-only") as run:
        events = run.topic("/tool_streams")
        assert events.count == 0
        for unknown in ("", "/tool_stream"):
            with pytest.raises(UserError, match=r"no topic is called .*\(valid: /"):
                run.topic(unknown)
        with pytest.raises(AssertionError, match=r"did not come within 1 s; there was no event at all$"):
            await run.until(event("close"), 1)
        for misspelt, near in (
            (event(skill="trun"), r"no skill is called 'trun'; did you mean 'turn'\?; there was no event at all$"),
            (event(skill="turn", module="drvie"), r"no module is called 'drvie'; did you mean 'drive'\?"),
        ):
            with pytest.raises(AssertionError, match=rf"did not come within 1 s; {near}"):
                await run.until(misspelt, 1)
        await run.call("turn", angle_deg=5.0)
        await run.until(event("close"), 10)
        assert events.last.module == "drive"


async def test_a_module_that_fails_fails_its_test(blueprint_run: Callable[..., MissionRun]) -> None:
    spec = ModuleSpec(name="follow", type="tests.recording.modules:Breaks")
    alone = blueprint("alone", spec, external=("detections#vision_msgs.Detection2DArray",))
    with pytest.raises(ModuleFailedError, match="'follow' failed: RuntimeError: broken on purpose"):
        async with blueprint_run(alone) as run:
            await run.until(event("update"), 5)
    with pytest.raises(ModuleFailedError):
        async with blueprint_run(alone) as run:
            await run.sleep(2)
    async with blueprint_run(alone) as run:
        await run.sleep(0.5)


async def test_a_blueprint_that_check_refuses_is_not_run(blueprint_run: Callable[..., MissionRun]) -> None:
    clashing = blueprint("clashing", *(module(Breaks, name=name) for name in ("one", "other")))
    with pytest.raises(BlueprintError) as refused:
        blueprint_run(clashing)
    assert refused.value.problems == tuple(problem for problem in check(clashing) if problem.severity == "error")
    assert "is offered by both 'one' and 'other'" in str(refused.value)


@pytest.mark.virtual_time
async def test_a_run_outside_of_its_block_names_the_block(tmp_path: Path) -> None:
    usage = r"use `async with blueprint_run\(…\) as run:`"
    run = MissionRun("robot-only", record=tmp_path / "run.lcmlog", settings=SMALL)
    uses = (lambda: run.gateway, lambda: run.module("robot"), lambda: run.topic("/odom"), run.position)
    for use in uses:
        with pytest.raises(UserError, match=f"has not begun; {usage}"):
            use()
    with pytest.raises(UserError, match=f"call\\('turn'\\): the block .* has not begun; {usage}"):
        await run.call("turn")
    with pytest.raises(UserError, match=f"until: .* {usage}"):
        await run.until(event("update"))
    with pytest.raises(UserError, match=usage):
        await run
    async with run:
        await run.until(lambda: run.topic("/odom").last)
    assert run.topic("/odom").last is not None
    with pytest.raises(UserError, match=f"call.*say.* is over; {usage}"):
        await run.say("hello")


@pytest.mark.virtual_time
async def test_a_place_that_nothing_was_heard_of_yet_says_what_to_wait_for(tmp_path: Path) -> None:
    async with MissionRun("robot-only", record=tmp_path / "run.lcmlog", settings=SMALL) as run:
        with pytest.raises(UserError, match=r"nothing has come on /ground_truth yet, .* `await run\.until\("):
            run.position("base_link")
        await run.until(lambda: run.topic("/ground_truth").last)
        assert len(run.position("base_link")) == 2
