"""Skills that name one that takes their calls back: whether it can is known before it is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict

from dimos_streams.blueprint.check import check
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.skill import skill, skills_of


class By(BaseModel):
    by: float


class Exactly(By):
    model_config = ConfigDict(extra="forbid")


class Far(By):
    far: bool


class ByText(BaseModel):
    by: str = "1"


class Wordy(BaseModel):
    before: str


class After(BaseModel):
    after: float


@dataclass
class Before:
    before: float


class NoSettings(ModuleConfig):
    """Nothing to set."""


def module_with(back: Callable[..., Any] | None) -> type[Module]:
    """A module whose skill ``turn`` is undone by ``back``."""

    class Arm(Module):
        """An arm."""

        config: NoSettings

        @skill(undo="back")
        async def turn(self, by: float, slowly: bool = False) -> Before:
            """Turn it."""
            return Before(by)

    return type("Arm", (Arm,), {"back": skill(back)} if back is not None else {})


async def plain(self: Any, arguments: dict[str, Any], result: Any = None) -> None: ...
async def with_id(
    self: Any, result: dict[str, Any] | None, arguments: Any, call_id: str, pause_s: int = 1
) -> None: ...
async def typed(self: Any, arguments: By, result: Before | None) -> None: ...
async def no_result(self: Any, arguments: dict[str, Any]) -> None: ...
async def no_arguments(self: Any, by: float, result: Any = None) -> None: ...
async def more(self: Any, arguments: dict[str, Any], result: Any, why: str) -> None: ...
async def text(self: Any, arguments: str, result: Any = None) -> None: ...
async def number(self: Any, arguments: dict[str, Any], result: float | None = None) -> None: ...
async def always(self: Any, arguments: dict[str, Any], result: Before) -> None: ...
async def word(self: Any, arguments: dict[str, Any], result: Literal["a"] | None) -> None: ...
async def numbered(self: Any, arguments: dict[str, Any], result: Any, call_id: int) -> None: ...
async def others(self: Any, arguments: Far, result: Any = None) -> None: ...
async def by_text(self: Any, arguments: ByText, result: Any = None) -> None: ...
async def wordy(self: Any, arguments: dict[str, Any], result: Wordy | None = None) -> None: ...
async def after(self: Any, arguments: dict[str, Any], result: After | None = None) -> None: ...
async def fewer(self: Any, arguments: Exactly, result: Any = None) -> None: ...


@pytest.mark.parametrize("back", [plain, with_id, typed])
def test_a_skill_that_takes_what_it_is_given_undoes_others(back: Callable[..., Any]) -> None:
    back.__name__ = "back"
    assert set(skills_of(module_with(back))) == {"turn", "back"}


@pytest.mark.parametrize(
    ("back", "why"),
    [
        (None, "undo names 'back', which is no skill of it"),
        (
            no_result,
            "'back' can't undo it: it has no parameter 'result' (it gets the call's arguments, an object, and",
        ),
        (no_arguments, "it has no parameter 'arguments'"),
        (more, "nothing is given for its parameter 'why'"),
        (text, "its 'arguments' takes string, and no object"),
        (number, "its 'result' takes null or number, and is given null or object"),
        (always, "its 'result' takes object, and is given null or object"),
        (word, "its 'result' takes null or string, and is given null or object"),
        (numbered, "its 'call_id' takes integer, and no text"),
        (others, "its 'arguments' needs 'far', which 'turn' has not"),
        (fewer, "its 'arguments' takes no 'slowly', which 'turn' has"),
        (by_text, "the 'by' of its 'arguments' takes string, and is given number"),
        (wordy, "the 'before' of its 'result' takes string, and is given number"),
        (after, "its 'result' needs 'after', which that of 'turn' has not"),
    ],
)
def test_one_that_can_not_is_named_where_it_is_declared_and_by_check(
    back: Callable[..., Any] | None, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if back is not None:
        back.__name__ = "back"
    arm = module_with(back)
    with pytest.raises(TypeError) as error:
        skills_of(arm)
    assert str(error.value).startswith("Arm.turn: ")
    assert why in str(error.value)
    monkeypatch.setitem(globals(), "Arm", arm)
    blueprint = Blueprint(name="arm", modules={"arm": ModuleSpec(name="arm", type=f"{__name__}:Arm")})
    [problem] = check(blueprint)
    assert problem.severity == "error"
    assert why in problem.text


def test_a_skill_does_not_undo_itself() -> None:
    class Arm(Module):
        """An arm."""

        config: NoSettings

        @skill(undo="turn")
        async def turn(self, arguments: dict[str, Any], result: Any = None) -> None:
            """Turn it."""

    with pytest.raises(TypeError, match=r"Arm\.turn: undo names 'turn', the skill itself; valid: another skill"):
        skills_of(Arm)


def test_what_can_not_be_taken_back_names_no_undo() -> None:
    with pytest.raises(TypeError, match="undo='back' would never run with reversible=False: state one of them"):

        @skill(undo="back", reversible=False)
        async def drop(self: Any) -> None: ...
