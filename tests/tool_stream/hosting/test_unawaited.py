"""Skills that forget `await`: the log and the close name the line, and a test of the skill fails."""

from __future__ import annotations

import asyncio
import gc
import re
import warnings
from pathlib import Path

import pytest

from dimos_streams.blueprint import blueprint, module
from dimos_streams.errors import SkillError
from dimos_streams.module import Module
from dimos_streams.skill import Call, skill
from dimos_streams.testing import MissionRun, ModuleHarness
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.hosting.unawaited import warn_each_time
from dimos_streams.tool_stream.protocol.bounds import MAX_PAYLOAD

pytestmark = [pytest.mark.virtual_time, pytest.mark.filterwarnings("always:coroutine:RuntimeWarning")]
"""As it is without `-W error`, with which Python makes an error of it that pytest finds."""
HERE = Path(__file__)


def line_of(code: str) -> str:
    """``"file:line"`` of the first line in this file that begins with some code."""
    lines = enumerate(HERE.read_text().splitlines(), 1)
    return f"{HERE}:{next(at for at, line in lines if line.strip().startswith(code))}"


class Absent(Module):
    """Thinks of something else."""

    @skill
    async def chat(self, call: Call) -> str:
        """Say three things, of which none is said."""
        for word in ("a", "b", "c"):
            call.update(word)  # type: ignore[unused-coroutine]
        asyncio.sleep(1)  # type: ignore[unused-coroutine]
        await asyncio.create_task(self._within())
        return "chatted"

    async def _within(self) -> None:
        self._part()  # type: ignore[unused-coroutine]

    async def _part(self) -> None:
        """Do nothing."""

    @skill
    async def keep(self) -> str:
        """Keep what is to be awaited to the end."""
        kept = self._part()  # noqa: F841
        return "kept"

    @skill
    async def replace(self) -> str:
        """Drop what was kept in a line that awaits something else."""
        kept: object = self._part()
        kept = await asyncio.sleep(0, "its _parting")
        return str(kept)

    @skill
    async def leave(self) -> str:
        """Leave it where only the collector finds it."""
        left: list[object] = [self._part()]
        left.append(left)
        return "left"

    @skill
    async def collect(self) -> str:
        """Have everything collected."""
        gc.collect()
        return "collected"

    @skill
    async def in_steps(self) -> str:
        """Await one after the other."""
        for step in [self._step(), self._step()]:
            await step
        return "done"

    async def _step(self) -> None:
        await asyncio.sleep(10)

    @skill
    async def fail(self) -> str:
        """Fail besides."""
        self._part()  # type: ignore[unused-coroutine]
        raise SkillError("no")

    @skill
    async def recite(self) -> str:
        """Say much besides."""
        self._part()  # type: ignore[unused-coroutine]
        return "x" * (MAX_PAYLOAD - 2100)

    @skill
    async def well(self, call: Call) -> str:
        """Await all of it."""
        await call.update("Well")
        return "well"


async def closed_of(name: str) -> tuple[ToolEvent, str]:
    """The close of a call, and what its result and the end of the harness raise because of it."""
    harness = ModuleHarness(Absent)
    await harness.__aenter__()
    call = await harness.call(name)
    closed = await call.closed()
    with pytest.raises(RuntimeWarning) as error:
        await harness.__aexit__(None)
    if closed.outcome is Outcome.COMPLETED:
        for asked in (call.result, call.answer):
            with pytest.raises(RuntimeWarning, match=re.escape(str(error.value))):
                await asked()
    return closed, str(error.value)


async def test_each_line_is_named_once_in_the_log_and_in_the_close(settled_log: pytest.LogCaptureFixture) -> None:
    closed, raised = await closed_of("chat")
    assert (closed.outcome, closed.text) == (Outcome.COMPLETED, "chatted")
    assert "; ".join(settled_log.messages) == closed.data["unawaited"] == raised
    for said, code in zip(
        settled_log.messages, ("call.update(word)", "asyncio.sleep(1)", "self._part()"), strict=True
    ):
        assert said.startswith(f"skill 'chat' does not await `{code}")
        assert said.endswith(f" ({line_of(code)}), so it does nothing: put `await` before it")


async def test_what_was_kept_is_named_with_its_skill() -> None:
    _, raised = await closed_of("keep")
    assert raised.startswith(f"skill 'keep' ({HERE}:")
    assert raised.endswith(") does not await what _part() gives, so it does nothing: put `await` before it")


async def test_a_line_is_named_only_if_it_makes_what_it_drops() -> None:
    _, raised = await closed_of("replace")
    assert raised.startswith(f"skill 'replace' ({HERE}:")


async def test_nobody_is_blamed_for_what_the_collector_finds() -> None:
    async with ModuleHarness(Absent) as harness:
        assert await (await harness.call("leave")).result() == "left"
        with pytest.warns(RuntimeWarning, match="coroutine 'Absent._part' was never awaited"):
            assert await (await harness.call("collect")).result() == "collected"


async def test_who_is_cancelled_need_not_await_the_rest(settled_log: pytest.LogCaptureFixture) -> None:
    async with ModuleHarness(Absent) as harness:
        call = await harness.call("in_steps")
        await asyncio.sleep(1)
        call.cancel("enough")
        with pytest.warns(RuntimeWarning, match="coroutine 'Absent._step' was never awaited"):
            closed = await call.closed()
    assert (closed.outcome, "unawaited" in closed.data) == (Outcome.CANCELLED, False)
    assert "does not await" not in settled_log.text


async def test_a_call_that_fails_says_it_too() -> None:
    closed, raised = await closed_of("fail")
    assert (closed.outcome, closed.data["error"]) == (Outcome.FAILED, "SkillError")
    assert closed.data["unawaited"] == raised


async def test_the_log_has_what_has_no_room_in_the_close(settled_log: pytest.LogCaptureFixture) -> None:
    async with ModuleHarness(Absent) as harness:
        closed = await (await harness.call("recite")).closed()
    assert (closed.outcome, "unawaited" in closed.data) == (Outcome.COMPLETED, False)
    assert "skill 'recite' does not await" in settled_log.text


async def test_a_run_of_a_blueprint_fails_too(tmp_path: Path) -> None:
    with pytest.raises(RuntimeWarning, match=r"^skill 'keep'"):
        async with MissionRun(blueprint("absent", module(Absent)), record=tmp_path / "a.lcmlog") as run:
            await (await run.call("keep")).closed()


async def test_what_no_skill_has_made_is_warned_of_as_by_python() -> None:
    async with ModuleHarness(Absent) as harness:
        assert await (await harness.call("well")).result() == "well"
        with pytest.warns(RuntimeWarning, match="coroutine 'Absent._part' was never awaited"):
            harness.module._part()  # type: ignore[unused-coroutine]


@pytest.mark.parametrize(("options", "times"), [([], 2), (["error"], 1)])
def test_a_process_warns_each_time_unless_its_user_wants_otherwise(
    monkeypatch: pytest.MonkeyPatch, options: list[str], times: int
) -> None:
    monkeypatch.setattr("sys.warnoptions", options)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("default")
        warn_each_time()
        for _ in range(2):
            asyncio.sleep(0)  # type: ignore[unused-coroutine]
    assert len(warned) == times
