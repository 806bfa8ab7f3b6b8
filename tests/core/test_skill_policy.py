"""What a skill states of itself stands once, and means the same wherever it is read."""

from __future__ import annotations

import re
import sys
from typing import Annotated, Any, NoReturn, TypedDict

import pytest
from pydantic import BeforeValidator, Field

from dimos_streams.common.schemas.declaration_error import DeclarationError
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.skill import Call, SkillInfo, SkillPolicy, SkillTraits, skill, skills_of


class NoSettings(ModuleConfig):
    """Nothing to set."""


class Arm(Module):
    """Skills that state much, and nothing."""

    config: NoSettings

    @skill(resources={"wrist", "arm"}, on_duplicate="replace", approval="ask", undo="back", on_loss="continue")
    async def reach(self) -> None:
        """Reach out."""

    @skill
    async def back(self, arguments: dict[str, Any], result: None = None) -> None:
        """Take it back."""


def test_callers_see_each_trait_that_an_author_states() -> None:
    spec = skills_of(Arm)["reach"]
    info = spec.info("robot1/")
    assert info.resources == ("robot1/arm", "robot1/wrist")
    assert info.undo == "robot1_back"
    for name in SkillTraits.model_fields.keys() - {"resources", "undo"}:
        assert getattr(info, name) == getattr(spec.policy, name), name
    assert set(SkillPolicy.model_fields) - set(SkillTraits.model_fields) == {"time_limit_s", "name"}
    assert set(SkillInfo.model_fields) - set(SkillTraits.model_fields) == {"name", "description", "parameters"}


@pytest.mark.parametrize(
    ("stated", "moves", "may_move"),
    [
        ({}, False, False),
        ({"motion": True}, True, True),
        ({"resources": ("base",)}, True, True),
        ({"resources": ("robot1/base",)}, True, True),
        ({"resources": ("arm",)}, False, True),
    ],
)
def test_whoever_holds_anything_may_move_the_robot(stated: dict[str, Any], moves: bool, may_move: bool) -> None:
    traits = SkillTraits(**stated)
    assert (traits.moves, traits.may_move) == (moves, may_move)


@pytest.mark.parametrize("stated", [{"concurrent": True}, {"read_only": True}])
def test_what_only_senses_leaves_nothing_to_take_back(stated: dict[str, Any]) -> None:
    assert SkillTraits(**stated).senses
    assert not SkillTraits().senses


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"approval": "always"}, "approval: it must be 'never' or 'ask' (given: 'always')"),
        (
            {"resorces": {"base"}},
            "resorces: there is nothing of this name; did you mean 'resources'? (valid: resources, tags, ",
        ),
        ({"read_only": True, "motion": True}, "a skill can't be read_only with motion=True"),
        (
            {"concurrent": True, "resources": {"arm"}, "undo": "back"},
            "a skill can't be concurrent with resources, undo: it would change something",
        ),
        ({"concurrent": True, "reversible": False}, "a skill can't be concurrent with reversible=False"),
    ],
)
def test_what_no_skill_can_state_is_refused_where_it_is_stated(stated: dict[str, Any], said: str) -> None:
    place = r"^@skill of test_what_no_skill_can_state.*\.lift: "

    async def lift(self: Any) -> None: ...

    with pytest.raises(TypeError, match=place + re.escape(said)):
        skill(**stated)(lift)


class Handle:
    """A type that has no schema."""


class Load(TypedDict):
    kilos: int


def unlucky(value: object) -> NoReturn:
    raise KeyError("north")


class Crane:
    """Skills each of which has one thing that no skill can have."""

    @skill
    async def lift(self, height_m: float, /) -> None: ...

    @skill
    async def drop(self, _from_m: float = 1.0) -> None: ...

    @skill
    async def swing(self, call: Call | None = None) -> None: ...

    @skill
    async def pull(self, by: Annotated[list[int], Field(default_factory=list)] = [1]) -> None: ...  # noqa: B006

    @skill
    async def turn(self, to: Annotated[str, BeforeValidator(unlucky)] = "north") -> None: ...


def test_what_is_wrong_with_an_argument_is_said_as_it_is() -> None:
    with pytest.raises(DeclarationError) as error:
        skills_of(Crane)
    assert error.value.faults == (
        "Crane.lift: 'height_m' stands before a `/`, and a skill's arguments are given by name",
        "Crane.drop: '_from_m' begins with an underscore, which no argument of a skill may",
        "Crane.swing: 'call' always gets the running call: `call: Call`",
        "Crane.pull: 'by': cannot specify both default and default_factory",
        "Crane.turn: a check of its defaults fails (KeyError: 'north')",
    )


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there any TypedDict does")
def test_which_typed_dict_has_a_schema_is_said() -> None:
    class Winch:
        @skill
        async def wind(self, load: Load) -> None: ...

    with pytest.raises(TypeError, match=r"the type of 'load', Load, has no schema; .* that of typing_extensions$"):
        skills_of(Winch)


def test_an_argument_without_a_schema_is_named() -> None:
    class Arm:
        @skill
        async def lift(self, height_m: float, handle: Handle) -> None: ...

    with pytest.raises(TypeError, match=r"^Arm\.lift: the type of 'handle', Handle, has no schema; valid are those"):
        skills_of(Arm)
