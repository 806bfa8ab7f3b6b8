"""Arguments against schemas that come from outside, and what they leave out."""

from __future__ import annotations

import sys
import time
import tracemalloc
from typing import Any

import pytest

from dimos_streams.common.schemas.references import MAX_PARTS
from dimos_streams.errors import SkillArgumentError, SkillError
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.arguments.defaults import checked_arguments, with_defaults
from dimos_streams.tool_stream.arguments.schemas import check_arguments, check_schema
from dimos_streams.tool_stream.arguments.steps import MAX_STEPS

_POINT = {"type": "object", "properties": {"x": {"type": "number", "default": 1.0}, "y": {"type": "number"}}}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name"],
    "$defs": {"Point": {**_POINT, "required": ["y"], "additionalProperties": False}},
    "properties": {
        "name": {"type": "string"},
        "to": {"type": "integer", "default": 3},
        "at": {"$ref": "#/$defs/Point"},
        "way": {"type": "array", "items": {"$ref": "#/$defs/Point"}},
        "goal": {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}], "default": None},
        "start": {"$ref": "#/$defs/Point", "default": {"y": 2.0}},
    },
}


def skill(schema: dict[str, Any]) -> SkillInfo:
    return SkillInfo(name="go", description="", parameters=schema)


def problems(arguments: dict[str, Any], schema: dict[str, Any] = _SCHEMA) -> dict[str, str]:
    try:
        check_arguments(skill(schema), arguments)
    except SkillArgumentError as error:
        return dict(error.problems)
    return {}


_INTEGER, _NULL = {"type": "integer"}, {"type": "null"}


@pytest.mark.feature("F5")
@pytest.mark.parametrize(
    ("options", "value", "expected"),
    [
        (
            [{**_POINT, "required": ["z"]}, {"type": "object", "properties": {"y": {"maximum": 2}}}],
            {"y": 3},
            {"it": "'z' is a required property; or y: it must be at most 2 (given: {\"y\": 3})"},
        ),
        ([_INTEGER, _NULL], 1.5, {"it": "it must be a whole number or null (given: 1.5)"}),
        ([{**_INTEGER, "minimum": 1}, _NULL], 0, {"it": "it must be at least 1 or null (given: 0)"}),
        ([{"const": "auto"}, {"type": "number"}], "x", {"it": "it must be 'auto' or a number (given: 'x')"}),
        ([{**_POINT, "required": ["y"]}, _NULL], {}, {"it.y": "is missing"}),
        ([_POINT, _NULL], {"y": "a"}, {"it.y": "it must be a number (given: 'a')"}),
        ([{"enum": ["a"]}, {"const": "b"}], "x", {"it": "it must be 'a' or 'b' (given: 'x')"}),
        (
            [{"type": ["integer", "string"]}, _NULL],
            [],
            {"it": "it must be a whole number, a text or null (given: [])"},
        ),
    ],
)
def test_what_an_argument_of_several_types_may_be_is_named(
    options: list[Any], value: object, expected: dict[str, str]
) -> None:
    for word in ("anyOf", "oneOf"):
        assert problems({"it": value}, {"type": "object", "properties": {"it": {word: options}}}) == expected


@pytest.mark.parametrize(
    ("step", "value", "fits"),
    [
        (0.1, 0.3, True),
        (0.01, 0.07, True),
        (0.1, 0.1 + 0.2, True),
        (0.1, -1234567.8, True),
        (1e-300, 1e308, True),
        (0.5, 10**22, True),
        (0.1, 0, True),
        (0.1, 0.35, False),
        (1, 1e9 + 0.5, False),
        (0.01, 0.075, False),
        (2**53, 2**53 + 1, False),
    ],
)
def test_a_multiple_is_one_as_it_is_written_in_decimals(step: float, value: float, fits: bool) -> None:
    wrong = {} if fits else {"it": f"it must be a multiple of {step} (given: {value})"}
    assert problems({"it": value}, {"type": "object", "properties": {"it": {"multipleOf": step}}}) == wrong


def test_a_list_of_items_is_refused_by_the_name_that_it_has_now() -> None:
    schema = {"type": "object", "properties": {"it": {"type": "array", "items": [{"type": "string"}]}}}
    with pytest.raises(SkillError, match=r"2020-12 \(`items` is a list, which is called `prefixItems` there\)$"):
        check_arguments(skill(schema), {"it": ["a"]})


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"name": "a"}, {}),
        ({"name": "a", "goal": None, "at": {"y": 1}}, {}),
        ({}, {"name": "is missing"}),
        ({"name": 1}, {"name": "it must be a text (given: 1)"}),
        (
            {"nam": 1},
            {
                "name": "is missing",
                "nam": "is not an argument of this skill (valid: name, to, at, way, goal, start)",
            },
        ),
        ({"name": "a", "at": {"x": 1}}, {"at.y": "is missing"}),
        ({"name": "a", "way": [{"y": 1}, {"y": "2"}]}, {"way.1.y": "it must be a number (given: '2')"}),
        ({"name": "a", "at": {"y": 1, "z": 1}}, {"at.z": "is not an argument of this skill (valid: x, y)"}),
        ({"name": "a", "to": "3"}, {"to": "it must be a whole number (given: '3')"}),
    ],
)
def test_each_field_that_does_not_fit_is_named(arguments: dict[str, Any], expected: dict[str, str]) -> None:
    assert problems(arguments) == expected


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"maximum": 5}, 50, "it must be at most 5 (given: 50)"),
        ({"exclusiveMinimum": 0}, 0, "it must be more than 0 (given: 0)"),
        ({"exclusiveMaximum": 1}, 1.5, "it must be less than 1 (given: 1.5)"),
        ({"multipleOf": 2}, 3, "it must be a multiple of 2 (given: 3)"),
        ({"enum": ["a", "b", 3]}, "c", "it must be 'a', 'b' or 3 (given: 'c')"),
        ({"type": ["boolean", "array"]}, "no", "it must be true or false or a list (given: 'no')"),
        ({"minLength": 1}, "", "it must have at least 1 character (given: '')"),
        ({"maxItems": 2}, [1, 2, 3], "it must have at most 2 items (given: [1, 2, 3])"),
        ({"not": {}}, 1, "1 should not be valid under {}"),
    ],
)
def test_what_a_value_must_be_is_said_as_of_settings(schema: dict[str, Any], value: object, said: str) -> None:
    assert problems({"d": value}, _d(schema)) == {"d": said}


def test_what_is_said_of_arguments_is_bounded() -> None:
    nothing = {"type": "object", "properties": {}, "additionalProperties": False}
    assert problems({"a": 1}, nothing) == {"a": "is not an argument of this skill (valid: none)"}
    many = problems({f"a{number}": 1 for number in range(50)}, nothing)
    assert list(many) == [f"a{number}" for number in range(20)]
    (name,) = problems({"n" * 500: 1}, nothing)
    assert name == "n" * 200
    for length in (78, 79, 5000):
        (problem,) = problems({"name": "a", "to": "x" * length}).values()
        assert len(problem) == len("it must be a whole number (given: )") + 80
        assert problem.endswith("...)") is (length > 78)
    (problem,) = problems({"a": "x"}, {"type": "object", "properties": {"a": {"enum": ["y" * 500]}}}).values()
    assert len(problem) == 200 + len(" (given: 'x')")
    assert problems({"a": 1}, {"type": "object", "maxProperties": 0}).keys() == {"arguments"}


@pytest.mark.parametrize("within", [{"type": "integer"}, False])
def test_faults_stand_in_the_order_of_their_arguments_in_every_process(within: object) -> None:
    names = [f"n{number}" for number in range(12)]
    assert list(problems(dict.fromkeys(names, "x"), {"additionalProperties": within})) == names


def test_numbers_that_no_robot_reckons_with_are_named_wherever_they_are() -> None:
    large = int(sys.float_info.max) + 1
    why = "1.798e+308 is too large: a number is at most 1.798e+308"
    assert problems({"a": {"b": [1, large]}, "c": -large}) == {"a.b.1": why, "c": f"-{why}"}
    assert problems({"name": "a", "to": large - 1}) == problems({"name": "a", "to": 1 - large}) == {}
    assert len(problems({"a": [large] * 50})) == 20
    (name,) = problems({"n" * 500: large})
    assert name == "n" * 200


def test_a_long_name_is_not_kept_once_for_each_value_below_it() -> None:
    values = [0] * 500
    for within in ({"n" * 100_000: values}, {"a": {"n" * 100_000: values}}):
        tracemalloc.start()
        assert "40000 are possible" in problems(within, {})["arguments"]
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < 5_000_000  # one each were 50 MB


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"not": schema}
    return schema


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"$ref": "https://example.org/x"}, "is not local: it must begin with '#/'"),
        ({"$ref": "#/$defs/none"}, "leads nowhere"),
        ({"$ref": "#/a/b", "a": 3}, "leads nowhere"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "contains itself"),
        ({"$defs": {"a": {"items": {"$ref": "#/$defs/b"}}, "b": {"$ref": "#/$defs/a"}}}, "contains itself"),
        ({"$dynamicRef": "#x"}, "only $ref is understood"),
        ({"properties": {"a": {"$recursiveRef": "#"}}}, "only $ref is understood"),
        (nested(65), "nested more than 64 deep"),
        ({"enum": [[0] * MAX_PARTS]}, f"more than {MAX_PARTS} parts"),
    ],
)
def test_a_schema_that_could_take_for_ever_is_none(schema: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        check_schema(schema)
    assert why in str(refused.value)
    with pytest.raises(SkillError, match="the schema of skill 'go' can't be used") as error:
        check_arguments(skill(schema), {})
    assert len(str(error.value)) <= 500


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": [{"type": "integer"}]}, [1]),
        ({"minimum": "x"}, 1),
        ({"type": "objekt"}, 1),
        ({"type": ["string", ["null"]]}, 1),
        ({"exclusiveMinimum": True, "minimum": 0}, 1),
        ({"required": True}, 1),
        ({"type": []}, 1),
        ({"type": "array", "items": {"properties": {"b": {"anyOf": [{"type": "any"}]}}}}, [1]),
    ],
)
def test_a_schema_of_another_draft_is_named_as_such(schema: dict[str, Any], value: object) -> None:
    with pytest.raises(SkillError, match=r"can't be used: it is not valid in JSON Schema 2020-12 \([^\n]+\)$"):
        check_arguments(skill({"properties": {"a": schema}}), {"a": value})
    with pytest.raises(ValueError, match="it is not valid in JSON Schema 2020-12"):
        check_schema({"properties": {"a": schema}})  # so it is not listed


def test_what_only_looks_like_a_part_of_a_schema_is_none() -> None:
    odd = {"type": "any", "items": [{}], "required": True, "minimum": "x"}
    check_schema({"x-units": odd, "default": odd, "properties": {"type": {"const": odd}, "items": {}}, "$defs": {}})


@pytest.mark.parametrize("draft", ["http://json-schema.org/draft-07/schema#", "http://json-schema.org/schema#"])
def test_a_part_with_a_version_of_its_own_is_checked_within_the_same_bounds(draft: str) -> None:
    text = {"$schema": draft, "type": "string", "pattern": "^(a+)+$"}
    schemas = ({"properties": {"a": text}}, {"properties": {"a": {"$ref": "#/$defs/T"}}, "$defs": {"T": text}})
    for schema in schemas:
        check_arguments(skill(schema), {"a": f"{'a' * 60}b"})
        assert problems({"a": 1}, schema) == {"a": "it must be a text (given: 1)"}


def test_a_sound_schema_may_refer_to_its_parts_often() -> None:
    check_schema(nested(64))
    check_schema({"enum": [[0] * (MAX_PARTS - 3)]})
    with pytest.raises(ValueError, match="parts"):
        check_schema({"enum": [[0] * (MAX_PARTS - 2)]})
    odd = {"$defs": {"a/b": {"type": "integer"}, "c~d e": {"$ref": "#/$defs/a~1b"}}}
    for reference in ("#/$defs/a~1b", "#/$defs/c~0d%20e"):
        schema = {**odd, "type": "object", "properties": {"x": {"$ref": reference}, "y": {"$ref": reference}}}
        check_schema(schema)
        assert problems({"x": 1, "y": "1"}, schema) == {"y": "it must be a whole number (given: '1')"}


def _d(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"d": schema}}


_HARD = "^(a+)+$"


@pytest.mark.parametrize(
    "schema",
    [
        _d({"pattern": _HARD}),
        _d({"not": {"pattern": "^a"}}),
        _d({"oneOf": [{"pattern": _HARD}, {"pattern": "^a"}]}),
        _d({"if": {"pattern": "^a"}, "then": {"maxLength": 3}}),
        _d({"contains": {"pattern": _HARD}}),
        {"patternProperties": {_HARD: {"type": "integer"}}, "additionalProperties": False},
        {"propertyNames": {"pattern": _HARD}},
        {"not": {"$ref": "#/$defs/a"}, "$defs": {"a": {"properties": {"d": {"pattern": "^a"}}}}},
        {"patternProperties": {_HARD: {}}, "unevaluatedProperties": False},
    ],
)
def test_expressions_are_left_to_the_module_and_forbid_nothing_here(schema: dict[str, Any]) -> None:
    text = "a" * 30 + "!"
    assert problems({"d": text}, schema) == problems({text: 1}, schema) == {}
    assert problems({"d": text, "e": "x"}, {**schema, "required": ["f"]}) == {"f": "is missing"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"type": "string"}}, [1] * 20_000),
        ({"items": {"allOf": [{"type": "number"}] * 300}}, [1] * 1000),
        ({"items": {"anyOf": [{"type": "string"}] * 60}}, [1] * 1000),
        ({"items": {"enum": [[[0] * 50]] * 200}}, [[[0] * 49]] * 500),
        ({"allOf": [{"type": "string"}] * 300}, ["x" * 60] * 500),
        ({"items": {"uniqueItems": True}}, [[[n] for n in range(300)]] * 60),
    ],
)
def test_arguments_that_take_too_long_to_check_are_refused(schema: dict[str, Any], value: object) -> None:
    began = time.process_time()
    assert problems({"d": value}, _d(schema)) == {
        "arguments": f"to check them takes more than {MAX_STEPS} steps: give fewer values, or shorter lists"
    }
    assert time.process_time() - began < 1.0


def _nested(depth: int, default: list[Any]) -> dict[str, Any]:
    """A schema of lists within each other, each of which is as long as ``default`` if it is left out."""
    items: dict[str, Any] = {"properties": {"x": {"default": "y" * 30_000}}}
    for _ in range(depth):
        items = {"properties": {"d": {"default": default, "items": items}}}
    return items


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        (_nested(4, [{}] * 40), {}),
        (_nested(1, []), {"d": [{}] * 13_000}),
        ({"properties": {"d": {"default": [{}] * 300, "items": {"anyOf": [{}] * 300}}}}, {}),
    ],
)
def test_defaults_that_take_too_long_are_refused(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    began = time.process_time()
    with pytest.raises(SkillArgumentError, match=f"more than {MAX_STEPS} steps"):
        checked_arguments(skill(schema), arguments)
    assert with_defaults(schema, arguments) == arguments, "no such call is made"
    assert time.process_time() - began < 1.0


def test_what_robots_are_asked_for_fits_and_equality_is_that_of_json() -> None:
    way = [{"x": 1.0, "y": number} for number in range(1000)]
    assert problems({"name": "a", "way": way}) == {}
    unique = _d({"uniqueItems": True})
    assert problems({"d": [{"a": number} for number in range(1500)]}, unique) == {}
    assert problems({"d": [1, True, "1", [1], {"1": 1}, 1.5, None]}, unique) == {}
    for twice in ([1, 1.0], [{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}], [True, True]):
        assert "non-unique" in problems({"d": twice}, unique)["d"]
    assert problems({"d": 1.0}, _d({"enum": ["a", 1]})) == problems({"d": [1.0]}, _d({"const": [1]})) == {}
    assert problems({"d": True}, _d({"enum": [1]})) == {"d": "it must be 1 (given: true)"}
    assert problems({"d": 0}, _d({"const": False})) == {"d": "it must be false (given: 0)"}


@pytest.mark.slow
def test_what_is_missing_or_unknown_is_not_looked_up_for_each_that_is() -> None:
    names = [f"a{number}" for number in range(5000)]
    schema = {"type": "object", "properties": {name: {} for name in names}, "additionalProperties": False}
    began = time.process_time()
    assert len(problems({}, {**schema, "required": names})) == 20
    found = problems({f"b{number}": 1 for number in range(5000)}, schema)
    assert len(found) == 20
    assert max(map(len, found.values())) < 2100
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize(
    ("arguments", "filled"),
    [
        ({}, {}),
        ({"to": 4}, {"to": 4}),
        ({"at": {"y": 5}}, {"at": {"y": 5, "x": 1.0}}),
        ({"at": {"y": 5, "x": 6}}, {"at": {"y": 5, "x": 6}}),
        ({"way": [{"y": 5}, {"x": 0, "y": 5}]}, {"way": [{"y": 5, "x": 1.0}, {"x": 0, "y": 5}]}),
        ({"goal": {"y": 5}}, {"goal": {"y": 5, "x": 1.0}}),
        ({"unknown": {"y": 5}}, {"unknown": {"y": 5}}),
    ],
)
def test_what_is_left_out_is_filled_in_at_every_depth(arguments: dict[str, Any], filled: dict[str, Any]) -> None:
    defaults = {"to": 3, "goal": None, "start": {"y": 2.0, "x": 1.0}}
    assert with_defaults(_SCHEMA, {"name": "a", **arguments}) == defaults | {"name": "a"} | filled
    if "unknown" not in arguments:
        assert checked_arguments(skill(_SCHEMA), {"name": "a", **arguments}) == defaults | {"name": "a"} | filled


def test_a_default_that_does_not_fit_its_own_schema_is_none() -> None:
    properties = {
        "good": {"type": "integer", "default": 1},
        "bad": {"type": "integer", "default": "x"},
        "inner": {"type": "object", "properties": {"bad": {"type": "integer", "default": "x"}}},
    }
    schema = skill({"type": "object", "properties": properties})
    assert checked_arguments(schema, {}) == {"good": 1}
    assert checked_arguments(schema, {"bad": 2, "inner": {}}) == {"good": 1, "bad": 2, "inner": {}}
    with pytest.raises(SkillArgumentError):
        checked_arguments(schema, {"bad": "x"})


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": 3},
        {"properties": {"a": 3}},
        {"$ref": "#/nowhere"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"anyOf": [{"properties": {"a": {"default": 1}}}, {"properties": {"b": {"default": 1}}}]},
        {"anyOf": 3},
    ],
)
def test_what_can_not_be_known_is_not_filled_in(schema: dict[str, Any]) -> None:
    assert with_defaults(schema, {"x": [1, {"y": 2}]}) == {"x": [1, {"y": 2}]}


@pytest.mark.parametrize("word", ["anyOf", "oneOf", "allOf"])
def test_the_one_part_that_is_about_objects_counts(word: str) -> None:
    part = {"properties": {"a": {"default": 1}}}
    assert with_defaults({word: [{"type": "null"}, part]}, {}) == {"a": 1}
    both = {word: [{"type": "null"}, part], "properties": {"b": {"default": 2}}}
    assert with_defaults(both, {}) == {"b": 2}
