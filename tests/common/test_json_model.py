"""What clients send is taken as JSON has it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, TypeAdapter, ValidationError

from dimos_streams.common.invalid import problems_with_values
from dimos_streams.common.schemas.json_model import JsonModel

FLAG, WHOLE, NUMBER = "it must be true or false", "it must be a whole number", "it must be a number"


class Point(JsonModel):
    """Is within another one."""

    x: float = 0.0


class Go(JsonModel):
    """One of several."""

    command: Literal["go"]
    fast: bool = False
    count: int | None = None
    pace: float = 1.0
    at: Point | None = None
    ids: tuple[int, ...] = ()
    paces: dict[str, float] = Field(default_factory=dict)
    name: str | int = ""
    anything: dict[str, Any] = Field(default_factory=dict)


class Stay(JsonModel):
    """The other one."""

    command: Literal["stay"]


COMMANDS: TypeAdapter[Go | Stay] = TypeAdapter(Annotated[Go | Stay, Field(discriminator="command")])


@pytest.mark.parametrize(
    ("given", "problems"),
    [
        ({"fast": "yes"}, {"go.fast": FLAG}),
        ({"fast": 1}, {"go.fast": FLAG}),
        ({"fast": 0.0}, {"go.fast": FLAG}),
        ({"count": True, "pace": "2"}, {"go.count": WHOLE, "go.pace": NUMBER}),
        ({"count": "2"}, {"go.count": WHOLE}),
        ({"count": 1.5}, {"go.count": WHOLE}),
        ({"pace": False}, {"go.pace": NUMBER}),
        ({"at": {"x": "1"}}, {"go.at.x": NUMBER}),
        ({"ids": [1, True, "3"]}, {"go.ids.1": WHOLE, "go.ids.2": WHOLE}),
        ({"paces": {"a": 1, "b": "1"}}, {"go.paces.b": NUMBER}),
    ],
)
def test_nothing_is_made_a_boolean_or_a_number(given: dict[str, Any], problems: dict[str, str]) -> None:
    with pytest.raises(ValidationError) as refused:
        COMMANDS.validate_python({"command": "go", **given})
    found = problems_with_values(refused.value, "it")
    assert {path: text.partition(" (given: ")[0] for path, text in found.items()} == problems


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"fast": True, "count": 2.0, "pace": 2}, {"fast": True, "count": 2, "pace": 2.0}),
        ({"count": None, "ids": [1, 2.0], "at": {"x": 1}}, {"count": None, "ids": (1, 2), "at": Point(x=1.0)}),
        (
            {"name": "5", "anything": {"a": True, "b": [1, "2"]}},
            {"name": "5", "anything": {"a": True, "b": [1, "2"]}},
        ),
        ({}, {"fast": False}),
    ],
)
def test_what_the_schema_allows_is_taken(given: dict[str, Any], taken: dict[str, Any]) -> None:
    command = dict(COMMANDS.validate_python({"command": "go", **given}))
    assert {name: command[name] for name in taken} == taken
