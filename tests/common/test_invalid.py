"""What pydantic finds wrong is said in words for people, by one piece of code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

import dimos_streams
from dimos_streams.common.invalid import first_problem, in_a_line, problems_with_values


class Robot(BaseModel):
    """Has checks of its own."""

    name: str
    legs: int = 4

    @field_validator("name")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        if not name:
            raise ValueError("a robot has a name, say 'rob'")
        assert name.islower(), "it is lower case, say 'rob'"
        return name


@pytest.mark.feature("F5")
def test_the_librarys_own_words_are_left_out() -> None:
    with pytest.raises(ValidationError) as empty:
        Robot.model_validate({"name": "", "legs": "many"})
    assert first_problem(empty.value, "it") == "name: a robot has a name, say 'rob'"
    problems = problems_with_values(empty.value, "it")
    assert problems["legs"].startswith("it must be a whole number")
    assert in_a_line(problems).startswith("name: a robot has a name, say 'rob' (given: ''); legs: it must be")
    with pytest.raises(ValidationError) as loud:
        Robot.model_validate({"name": "ROB"})
    assert first_problem(loud.value, "it").startswith("name: it is lower case, say 'rob'")
    with pytest.raises(ValidationError) as none:
        Robot.model_validate([])
    assert first_problem(none.value, "the file") == "the file: it must be an object, names with their values", (
        "no class is named"
    )


class Bounded(BaseModel):
    """Has fields with bounds, as settings and requests have."""

    model_config = ConfigDict(extra="forbid")

    rate_hz: float = Field(gt=0, le=60)
    count: int = Field(ge=1, lt=5)
    code: str = Field(min_length=1, max_length=3, pattern="^[a-z]*$")
    names: tuple[str, ...] = Field(max_length=1)
    on: bool
    mode: Literal["a", "b"]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("rate_hz", 61, "it must be at most 60"),
        ("rate_hz", 0, "it must be more than 0"),
        ("rate_hz", "fast", "it must be a number"),
        ("count", 0, "it must be at least 1"),
        ("count", 5, "it must be less than 5"),
        ("count", 1.5, "it must be a whole number"),
        ("code", "", "it must have at least 1 character"),
        ("code", "abcd", "it must have at most 3 characters"),
        ("code", "A", "it must match pattern '^[a-z]*$'"),
        ("code", 7, "it must be a text"),
        ("names", ["a", "b"], "it must have at most 1 item, not 2"),
        ("names", 7, "it must be a list"),
        ("on", "perhaps", "it must be true or false"),
        ("mode", "c", "it must be 'a' or 'b'"),
        ("moed", "a", "there is nothing of this name"),
    ],
)
def test_nothing_is_said_of_inputs(name: str, value: object, said: str) -> None:
    good = {"rate_hz": 1.0, "count": 1, "code": "a", "names": [], "on": True, "mode": "a"}
    assert set(good) == set(Bounded.model_fields)
    with pytest.raises(ValidationError) as bad:
        Bounded.model_validate({**good, name: value})
    assert problems_with_values(bad.value, "it") == {name: f"{said} (given: {value!r})"}
    names = problems_with_values(bad.value, "it", lambda path: [] if path else ["a", "b"])[name]
    assert names == f"{said}{'; valid: a, b' if name not in good else ''} (given: {value!r})"
    if name in good:
        with pytest.raises(ValidationError) as lacking:
            Bounded.model_validate({key: given for key, given in good.items() if key != name})
        assert problems_with_values(lacking.value, "it") == {name: "it is missing"}


def test_what_follows_from_another_fault_is_left_out() -> None:
    class Orders(BaseModel):
        codes: Annotated[tuple[Annotated[str, Field(max_length=2)], ...], Field(min_length=2)]

    for given, faults in ((["a", "bcd"], {"codes.1"}), (["abc", "bcd"], {"codes.0", "codes.1"}), (["a"], {"codes"})):
        with pytest.raises(ValidationError) as bad:
            Orders.model_validate({"codes": given})
        assert set(problems_with_values(bad.value, "it")) == faults


def test_nobody_else_takes_them_apart() -> None:
    package = Path(dimos_streams.__file__).parent
    found = [
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if '["msg"]' in (text := path.read_text(encoding="utf-8")) or "['msg']" in text
    ]
    assert found == ["common/invalid.py"]


def test_a_name_that_came_from_outside_is_said_in_short() -> None:
    class Names(BaseModel):
        names: dict[str, int]

    with pytest.raises(ValidationError) as raised:
        Names.model_validate({"names": {"x" * 100_000: "no number"}})
    assert len(in_a_line(problems_with_values(raised.value, "it"))) < 400


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")


@pytest.mark.feature("F5")
@pytest.mark.parametrize(("many", "further"), [(20, None), (3000, "2980 more problems")])
def test_of_thousands_of_problems_the_first_are_told_and_how_many_more_there_are(
    many: int, further: str | None
) -> None:
    with pytest.raises(ValidationError) as unknown:
        _Closed.model_validate({f"field{number}": 1 for number in range(many)})
    problems = problems_with_values(unknown.value, "it")
    assert problems.pop("…", None) == further
    assert list(problems) == [f"field{number}" for number in range(20)]
