"""What is raised in a skill, or by an author's check of its arguments: each ends the call, as what it is."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, NoReturn

import pytest
from pydantic import BeforeValidator

from dimos_streams.errors import SkillError
from dimos_streams.module import Module
from dimos_streams.skill import skill
from dimos_streams.testing import ModuleHarness
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.hosting.failures import logged_bug


class _MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it can't say what it is")


class Waiter(Module):
    """Drops what it carries."""

    @skill
    async def serve(self, dish: Annotated[str, BeforeValidator(lambda dish: dish.lower())] = "soup") -> str:
        """Serve a dish."""
        return dish

    @skill
    async def carry_two(self) -> None:
        """Carry two things at once, and drop both."""
        async with asyncio.TaskGroup() as hands:
            hands.create_task(_fail(SkillError("the tray is too heavy", result=1)))
            hands.create_task(_fail(SkillError("the floor is wet")))

    @skill
    async def carry_and_slip(self) -> None:
        """Drop one thing, and slip."""
        async with asyncio.TaskGroup() as hands:
            hands.create_task(_fail(SkillError("the floor is wet")))
            hands.create_task(_fail(ZeroDivisionError()))

    @skill
    async def mumble(self) -> None:
        """Fail without words."""
        raise _MuteError

    @skill
    async def end_the_test(self) -> None:
        """Do what is no error of a skill."""
        pytest.fail("nobody was to call this")

    @skill
    def end_the_test_in_a_thread(self) -> None:
        """Do the same in a thread."""
        pytest.fail("nobody was to call this")

    @skill
    async def forget_the_helper(self) -> None:
        """Wait for what is cancelled."""
        helper = asyncio.ensure_future(asyncio.sleep(1))
        helper.cancel()
        await helper

    @skill
    async def wait(self) -> None:
        """Wait for guests."""
        await asyncio.sleep(10)

    @skill
    async def loop(self) -> Any:
        """Return what contains itself."""
        found: list[Any] = []
        found.append(found)
        return found

    @skill
    async def half(self) -> str:
        """Return half a character, as names of files may have."""
        return "half \ud800"


async def _fail(error: Exception) -> NoReturn:
    raise error


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("name", "given", "outcome", "text"),
    [
        ("serve", {"dish": 3}, Outcome.REJECTED, "internal error test-1-error (AttributeError)"),
        ("carry_two", {}, Outcome.FAILED, "the tray is too heavy; the floor is wet"),
        ("carry_and_slip", {}, Outcome.FAILED, "internal error test-1-error (ExceptionGroup)"),
        ("mumble", {}, Outcome.FAILED, "internal error test-1-error (_MuteError)"),
        ("end_the_test", {}, Outcome.FAILED, "internal error test-1-error (Failed)"),
        ("end_the_test_in_a_thread", {}, Outcome.FAILED, "internal error test-1-error (Failed)"),
        ("loop", {}, Outcome.FAILED, "the result: not JSON: Circular reference"),
        ("half", {}, Outcome.COMPLETED, "half \ufffd"),
    ],
)
async def test_it_ends_the_call_and_says_what_it_is(
    name: str, given: dict[str, Any], outcome: Outcome, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with ModuleHarness(Waiter) as harness:
        closed = await (await harness.call(name, **given)).closed()
        assert (closed.outcome, closed.text[: len(text)]) == (outcome, text)
        assert ("Traceback" in caplog.text) is ("internal error" in text)
        assert "never retrieved" not in caplog.text
        assert await (await harness.call("serve")).result() == "soup"


@pytest.mark.virtual_time
async def test_many_failures_have_a_line_each_and_few_tracebacks(caplog: pytest.LogCaptureFixture) -> None:
    for number in range(200):
        logged_bug(f"c{number}", "serve", ValueError("x" * 100_000))
        await asyncio.sleep(0.02)
    lines = [record for record in caplog.records if "-error: ValueError" in record.getMessage()]
    assert len(lines) == 200
    assert sum(record.exc_info is not None for record in lines) == 23
    assert max(len(record.getMessage()) for record in lines) < 1200


@pytest.mark.virtual_time
async def test_a_result_of_one_of_several_errors_is_not_lost() -> None:
    async with ModuleHarness(Waiter) as harness:
        closed = await (await harness.call("carry_two")).closed()
        assert closed.data == {"outcome": "failed", "error": "SkillError", "result": 1}


@pytest.mark.virtual_time
async def test_one_that_awaits_what_is_cancelled_is_told_of_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with ModuleHarness(Waiter) as harness:
        closed = await (await harness.call("forget_the_helper")).closed()
        assert (closed.outcome, closed.text) == (Outcome.CANCELLED, "it was ended from inside")
        assert "forget_the_helper:test-1 ended because something that it awaited was cancelled" in caplog.text
        assert "in forget_the_helper\n    await helper" in caplog.text
        caplog.clear()
        call = await harness.call("wait")
        call.cancel()
        assert (await call.closed()).outcome is Outcome.CANCELLED
        assert caplog.text == ""
