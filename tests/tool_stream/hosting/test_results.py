"""What skills return, beside what they declare: nothing of it is lost, and nothing is changed without a word."""

from __future__ import annotations

import asyncio
import enum
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from dimos_streams.common import secrets
from dimos_streams.common.json.writing import json_text
from dimos_streams.errors import SkillError
from dimos_streams.module import Module
from dimos_streams.skill import Call, skill
from dimos_streams.skill.result_type import ResultType
from dimos_streams.testing import ModuleHarness
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.protocol.bounds import MAX_PAYLOAD


class Place(BaseModel):
    x: float
    y: float = 0.0


class Named(BaseModel):
    name: str = Field(alias="Name", serialization_alias="NAME")


@dataclass
class Load:
    kilos: int


class Side(enum.Enum):
    LEFT = "left"


class SaidSide(enum.Enum):
    LEFT = "left"

    def __str__(self) -> str:
        return "the left one"


class Crate(BaseModel):
    side: Side = Side.LEFT


class SaidCrate(Crate):
    def __str__(self) -> str:
        return "a crate"


class Fickle:
    """Pydantic knows nothing of it."""


def misfit(declared: Any, result: Any) -> str | None:
    return ResultType(declared).misfit("weigh", result, json_text(result))


@pytest.mark.parametrize(
    ("declared", "result"),
    [
        (int, 3), (float, 3), (str, Side.LEFT), (Side, Side.LEFT), (Side, "left"), (None, None), (Any, {"x": [1]}),
        (Place, Place(x=1)), (Place, {"x": 1}), (list[Place], [Place(x=1), {"x": 2}]), (Load, Load(2)), (Fickle, "y"),
        (tuple[float, int], [1, 2]), (Named, Named(Name="a")), (float | None, None), (dict[str, Any], {"a": None}),
        (Literal["a"], "a"), (Annotated[int, Field(ge=0)], 0), (str, "half \ud800 a character"), (object, 1),
    ],
)  # fmt: skip
def test_a_result_as_its_skill_declares_it_is_nothing_to_speak_of(declared: Any, result: Any) -> None:
    assert misfit(declared, result) is None


@pytest.mark.parametrize(
    ("declared", "result", "text"),
    [
        (int, "3", "skill 'weigh' has returned \"3\", declared as int: the result: it must be a whole number"),
        (int, None, "skill 'weigh' has returned null, declared as int: the result: it must be a whole number"),
        (Literal["a", "b"], "c", "declared as Literal['a', 'b']: the result: it must be 'a' or 'b'"),
        (Place, {"y": 1.0}, "Place: x: it is missing"),
        (list[Load], [Load(1), 2], "1: it must be an object, names with their values"),
        (Annotated[int, Field(ge=0)], -1, "the result: it must be at least 0"),
        (float, math.nan, "returned null, declared as float: the result: callers get null, because JSON has no nan"),
        (float | None, math.inf, "the result: callers get null, because JSON has no inf"),
        (Any, {"at": [1.0, -math.inf]}, "skill 'weigh' has returned {\"at\":[1.0,null]}: at.1: callers get null"),
        (Any, {"\udcff": math.nan}, "\ufffd: callers get null, because JSON has no nan"),
        (Place, Place(x=math.nan), "x: callers get null, because JSON has no nan"),
        (int, 10**400, "the result: callers get null, because JSON has no 1000"),
        pytest.param(int, 10**5000, "callers get null, because JSON has no number of so many digits", id="digits"),
    ],
)  # fmt: skip
def test_a_result_that_is_something_else_is_named(declared: Any, result: Any, text: str) -> None:
    assert text in (misfit(declared, result) or "")


class Lens(BaseModel):
    x: float
    pin: str = Field("4711", exclude=True)


if TYPE_CHECKING:
    from dimos_streams.messages.geometry_msgs import Pose


@dataclass
class Found:
    """Its author's checker knows the type, and nobody else needs to."""

    pose: Pose


def test_only_what_callers_get_is_shown_of_it_and_no_secret_however_it_is_cut(no_secrets: None) -> None:
    secrets.know("the-key-" * 20)
    assert "4711" not in (misfit(Lens, Lens(x=math.nan, pin="4711")) or "4711")
    shown = misfit(int, f"it is {'the-key-' * 20} of course") or ""
    assert "the-key" not in shown
    assert "[redacted]" in shown


def test_types_that_only_checkers_import_are_not_compared() -> None:
    assert misfit(Found, Found(pose="somewhere")) is None  # type: ignore[arg-type]


class Scales(Module):
    """Weighs, more or less."""

    @skill
    async def recite(self) -> int:
        """Say much."""
        return "x" * (MAX_PAYLOAD - 2050)  # type: ignore[return-value]

    @skill
    async def slowly(self) -> Any:
        """Say one thing after the other."""
        return (number for number in range(3))

    @skill
    async def odd(self) -> int:
        """Find that a check fails."""
        return 3

    @skill
    async def weigh(self) -> float:
        """Weigh what is there."""
        return math.nan

    @skill
    def count(self) -> int:
        """Count what is there."""
        return "three"  # type: ignore[return-value]

    @skill
    async def leave(self) -> None:
        """End the program."""
        sys.exit("enough")

    @skill
    def leave_in_a_thread(self) -> None:
        """End the program from a thread."""
        sys.exit(3)

    @skill
    async def interrupt(self) -> None:
        """End the program as Ctrl-C does."""
        raise KeyboardInterrupt

    @skill
    def interrupt_in_a_thread(self) -> None:
        """End the program from a thread as Ctrl-C does."""
        raise KeyboardInterrupt


@pytest.mark.virtual_time
async def test_the_caller_gets_it_the_log_says_so_and_a_test_fails(caplog: pytest.LogCaptureFixture) -> None:
    async with ModuleHarness(Scales) as harness:
        call = await harness.call("count")
        closed = await call.closed()
        assert (closed.outcome, closed.text, closed.data["result"]) == (Outcome.COMPLETED, "three", "three")
        for asked in (call.result, call.answer):
            with pytest.raises(TypeError, match="skill 'count' has returned \"three\", declared as int"):
                await asked()
        assert closed.data["misfit"] in caplog.text
        with pytest.raises(TypeError, match="JSON has no nan"):
            await (await harness.call("weigh")).result()


@pytest.mark.virtual_time
async def test_what_has_no_room_is_told_to_the_log_only(caplog: pytest.LogCaptureFixture) -> None:
    async with ModuleHarness(Scales) as harness:
        closed = await (await harness.call("recite")).closed()
        assert (closed.outcome, len(closed.data["result"])) == (Outcome.COMPLETED, MAX_PAYLOAD - 2050)
        assert "misfit" not in closed.data
    assert "skill 'recite' has returned" in caplog.text


@pytest.mark.virtual_time
async def test_no_error_of_the_comparison_is_one_of_the_call(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> str:
        raise RuntimeError("a type of somebody else's")

    async with ModuleHarness(Scales) as harness:
        monkeypatch.setattr(ResultType, "misfit", fail)
        assert await (await harness.call("odd")).result() == 3
    assert "can't be compared with what it declares" in caplog.text


@pytest.mark.virtual_time
async def test_what_can_be_gone_through_only_once_is_gone_through_once() -> None:
    async with ModuleHarness(Scales) as harness:
        assert await (await harness.call("slowly")).result() == [0, 1, 2]


class Shows(Module):
    """Returns what it is made with."""

    shown: Any = None

    @skill
    async def show(self) -> Any:
        """Show it."""
        return self.shown


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (Crate(), '{"side":"left"}'),
        (SaidCrate(), "a crate"),
        (Side.LEFT, "left"),
        (SaidSide.LEFT, "the left one"),
        (Path("a/b"), "a/b"),
    ],
)
async def test_people_read_json_where_a_class_has_no_words_of_its_own(shown: Any, text: str) -> None:
    async with ModuleHarness(Shows) as harness:
        assert isinstance(harness.module, Shows)
        harness.module.shown = shown
        assert (await (await harness.call("show")).closed()).text == text


@pytest.mark.parametrize("name", ["leave", "leave_in_a_thread", "interrupt", "interrupt_in_a_thread"])
def test_a_skill_that_ends_the_program_has_failed_and_its_module_lives_on(name: str) -> None:
    async def scenario() -> None:
        async with ModuleHarness(Scales) as harness:
            closed = await (await harness.call(name)).closed()
            assert closed.outcome is Outcome.FAILED
            assert ("(SystemExit)" if name.startswith("leave") else "(KeyboardInterrupt)") in closed.text
            assert json.loads(json_text(closed.data)) == {"outcome": "failed", "error": "internal"}
            assert (await (await harness.call("weigh")).closed()).outcome is Outcome.COMPLETED

    asyncio.run(scenario())


class Truck(Module):
    """It fails half-way."""

    load: Any = None
    problem = "the ramp is up"

    @skill
    async def unload(self) -> None:
        """Unload."""
        raise SkillError(self.problem, result=self.load)


@pytest.mark.virtual_time
@pytest.mark.feature("E9")
@pytest.mark.parametrize(
    ("load", "reported"), [({"parcels": 2}, {"parcels": 2}), (None, None), ("x" * 1_000_000, None)]
)
async def test_a_failed_call_has_what_there_is_of_a_result(load: Any, reported: Any) -> None:
    truck = Truck(name="truck")
    truck.load = load
    async with ModuleHarness(truck) as harness:
        closed = await (await harness.call("unload")).closed()
        assert (closed.outcome, closed.text, closed.data.get("result")) == ("failed", "the ramp is up", reported)


@pytest.mark.virtual_time
@pytest.mark.parametrize(("size", "reported"), [(37_900, True), (38_100, False)])
async def test_a_failed_calls_long_error_counts_for_more_than_its_result(size: int, reported: bool) -> None:
    truck = Truck(name="truck")
    truck.load, truck.problem = {"parcels": "x" * size}, "y" * 10_000
    async with ModuleHarness(truck) as harness:
        closed = await (await harness.call("unload")).closed()
        assert (closed.outcome, closed.text, "result" in closed.data) == ("failed", truck.problem, reported)


@dataclass(frozen=True)
class Parcels:
    parcels: int


class SpokenParcels(Parcels):
    def __str__(self) -> str:
        return f"{self.parcels} parcels"


@dataclass(frozen=True)
class OwnParcels:
    parcels: int

    def __str__(self) -> str:
        return f"{self.parcels} parcels of its own"


class Carrier(Module):
    """It says what it carries, in different ways."""

    @skill
    async def rest(self) -> str:
        """Rest."""
        return "rested"

    @skill
    async def carry(self, call: Call, how: str) -> Any:
        """Carry."""
        if how == "on":
            await asyncio.Event().wait()
        return {"plain": Parcels(2), "spoken": SpokenParcels(2), "own": OwnParcels(2), "table": {"parcels": 2}}[how]


@pytest.mark.slow
@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("plain", '{"parcels":2}'),
        ("spoken", "2 parcels"),
        ("own", "2 parcels of its own"),
        ("table", '{"parcels":2}'),
    ],
)
async def test_a_result_is_said_in_its_own_words_if_it_has_any(how: str, text: str) -> None:
    async with ModuleHarness(Carrier) as harness:
        closed = await (await harness.call("carry", how=how)).closed()
        assert (closed.text, closed.data["result"]) == (text, {"parcels": 2})
