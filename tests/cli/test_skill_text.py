"""Skills as people read them: all that is known of one is told, and a list has a line for each."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from dimos_streams.cli.terminal.output import UNBOUNDED, table_lines
from dimos_streams.cli.terminal.skill_text import list_lines, signature, skill_lines
from dimos_streams.common.readable.shortening import at_most
from dimos_streams.common.schemas.plain import plain_schema
from dimos_streams.tool_stream.gateway import OfferedSkill

OTHERWISE: dict[str, Any] = {
    "name": "t",
    "description": "It does.\nIt does more.",
    "parameters": {"properties": {"x": {"type": "number"}}},
    "resources": ("arm",),
    "tags": ("safe",),
    "on_duplicate": "confirm",
    "duplicate_scope": "arguments",
    "audience": "operator",
    "motion": True,
    "concurrent": True,
    "read_only": True,
    "reversible": False,
    "undo": "back",
    "frame": "map",
    "approval": "ask",
    "polling": True,
    "protected": True,
    "on_loss": "continue",
    "module": "n",
    "available": False,
    "agent": True,
    "robot": "r1",
    "shadowed": [{"name": "s", "description": "", "parameters": {}, "module": "other", "available": True}],
}


def offered(**traits: Any) -> OfferedSkill:
    return OfferedSkill(
        **{"name": "s", "description": "", "parameters": {}, "module": "m", "available": True, **traits}
    )


@pytest.mark.parametrize("trait", OfferedSkill.model_fields)
def test_whatever_a_skill_states_is_told(trait: str) -> None:
    base = {"motion": True, "parameters": OTHERWISE["parameters"]} if trait == "frame" else {}
    assert skill_lines(offered(**base)) != skill_lines(offered(**base, **{trait: OTHERWISE[trait]}))


def test_arguments_are_told_with_their_parts_and_limits() -> None:
    step = {"properties": {"x": {"type": "number", "minimum": 0, "maximum": 2}}, "required": ["x"], "title": "Step"}
    properties = {
        "steps": {"type": "array", "items": step, "minItems": 1, "description": "Where\nto go."},
        "then": {"anyOf": [step, {"type": "null"}], "default": None},
        "how": {"enum": ["fast", "slow"], "default": "slow"},
        "share": {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string"}]},
    }
    lines = skill_lines(offered(parameters={"properties": properties, "required": ["steps"]}))
    table = lines[lines.index("") + 1 :]
    assert [" ".join(line.split()) for line in table[: table.index("")]] == [
        "ARGUMENT TYPE DEFAULT",
        "steps array of Step (at least 1 item) required Where to go.",
        "steps[].x number (at least 0, at most 2) required",
        "then Step | null null",
        "then.x number (at least 0, at most 2) required",
        'how "fast" | "slow" "slow"',
        "share number (more than 0) | string",
    ]


def test_unions_pairs_and_mappings_are_told_by_what_is_in_them() -> None:
    class Circle(BaseModel):
        kind: Literal["circle"]
        radius: float

    class Square(BaseModel):
        kind: Literal["square"]

    class Arguments(BaseModel):
        shape: Annotated[Circle | Square, Field(discriminator="kind")]
        pair: tuple[float, int]
        some: tuple[float, int] | None = None
        counts: dict[str, list[int]] = {}

    lines = skill_lines(offered(parameters=plain_schema(Arguments)))
    assert [" ".join(line.split()) for line in lines[3 : lines.index("", 3)]] == [
        "shape Circle | Square required",
        'shape.kind "circle" required',
        "shape.radius number required",
        'shape.kind "square" required',
        "pair [number, integer] required",
        "some [number, integer] | null null",
        "counts object of array of integer {}",
    ]


def test_what_a_module_in_another_language_says_of_arguments_is_told_too() -> None:
    properties = {
        "mode": {"$ref": "#/$defs/Mode", "description": "How."},
        "any": True,
        "pair": {"type": "array", "items": [{"type": "integer"}, {"type": "string"}]},
        "either": {"anyOf": [True, {"type": "object", "properties": {"deep": False}}]},
        "rows": {"type": "array", "items": True},
    }
    schema = {"properties": properties, "$defs": {"Mode": {"enum": ["up", "down"], "default": "up"}}}
    lines = skill_lines(offered(parameters=schema))
    assert [" ".join(line.split()) for line in lines[2 : lines.index("", 2)]] == [
        "ARGUMENT TYPE DEFAULT",
        'mode "up" | "down" "up" How.',
        "any any",
        "pair array of any",
        "either any | object",
        "either.deep any",
        "rows array of any",
    ]
    assert signature(schema).startswith('mode: "up" | "down" = "up", any: any, pair: array of any')


@pytest.mark.parametrize(("names", "words"), [("xy", "x and y"), ("y", "y"), ("", None)])
def test_a_frame_is_told_of_the_arguments_that_are_in_it(names: str, words: str | None) -> None:
    parameters = {"properties": {name: {"type": "number"} for name in (*names, "angle_deg")}}
    lines = [line.split(maxsplit=1) for line in skill_lines(offered(motion=True, parameters=parameters))]
    assert [line[1] for line in lines if line[:1] == ["frame"]] == ([] if words is None else [f"odom, of {words}"])


@pytest.mark.parametrize(
    ("traits", "said"),
    [({}, "by other calls, not by `undo`"), ({"undo": "back"}, "by back"), ({"reversible": False}, "by nothing")],
)
def test_what_undo_can_take_back_is_told(traits: dict[str, Any], said: str) -> None:
    assert any(line.split("  ", 2)[1:] == ["taken back", f"     {said}"] for line in skill_lines(offered(**traits)))


def test_a_skill_without_arguments_says_so() -> None:
    assert "  no arguments" in skill_lines(offered())


SCHEMA = {"properties": {"x": {}, "timeout_s": {"default": 5.0}}, "required": ["x"]}
LISTED = [
    offered(name="go", parameters=SCHEMA, description=f"It goes\nthere. {'word ' * 30}\n\nMore.", module="drive"),
    offered(name="look", parameters={"properties": {"one_argument": {}, "another": {}}}, description="Look."),
    offered(name="stop", module="drive", available=False),
    offered(name="say", module="mind", agent=True, robot="r1"),
]


def test_a_narrow_list_has_one_line_for_most_skills() -> None:
    *lines, last = list_lines(LISTED, 80)
    assert lines == [
        "drive",
        f"  go x [timeout_s]              {at_most('It goes there. ' + 'word ' * 30, 48)}",
        "m",
        "  look [one_argument] [another]",
        "                                Look.",
        "drive: does not answer",
        "  stop",
        "mind of r1, an agent",
    ]
    assert last == "  say"
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("width", [200, UNBOUNDED])
def test_where_there_is_room_arguments_never_have_a_line_of_their_own(width: int) -> None:
    lines = list_lines(LISTED, width)
    assert lines[1].startswith("  go x [timeout_s]               It goes there. word word")
    assert lines[3] == "  look [one_argument] [another]  Look."


def test_the_last_column_of_a_table_stays_within_the_terminal() -> None:
    rows = [
        ("ID", "TEXT"),
        ("a", "short"),
        ("b" * 20, "one two three four five six seven /a/path-that/is/left-whole"),
    ]
    assert table_lines(rows)[2] == f"{rows[2][0]}  {rows[2][1]}"
    assert table_lines(rows, 46) == [
        "ID                    TEXT",
        "a                     short",
        "bbbbbbbbbbbbbbbbbbbb  one two three four five",
        "                      six seven",
        "                      /a/path-that/is/left-whole",
    ]
    assert table_lines(rows, 40) == [
        "ID                    TEXT",
        "a                     short",
        "bbbbbbbbbbbbbbbbbbbb",
        "    one two three four five six seven",
        "    /a/path-that/is/left-whole",
    ]


@pytest.mark.parametrize(
    "part",
    [True, {"properties": True}, {"properties": {"x": {}}, "required": True}, {"anyOf": True}, {"enum": 5}],
)
def test_what_is_wrong_within_the_schema_of_a_skill_hides_no_skill(part: object) -> None:
    parameters = {"properties": {"order": part}}
    skill = OfferedSkill(module="arm", available=True, name="pick", description="Pick.", parameters=parameters)
    assert any("pick" in line for line in list_lines([skill], UNBOUNDED))
    assert any("order" in line for line in skill_lines(skill, UNBOUNDED))
    assert signature(skill.parameters).startswith("order: ")
