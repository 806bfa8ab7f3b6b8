"""Schemas of tools as Gemini takes them, whatever somebody's program describes."""

from __future__ import annotations

from typing import Any

import pytest

from dimos_streams.agent.models.chat.plain_schemas import plain_parameters, plain_schema

TEXT = {"type": "string"}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "alternatives stand alone": (
        {"description": "Where.", "anyOf": [{"type": "number"}, {"type": "string", "description": "A name."}]},
        {"anyOf": [{"type": "number", "description": "Where."}, {"type": "string", "description": "A name."}]},
    ),
    "alternatives that only narrow": ({"type": "string", "anyOf": [{"minLength": 1}, {"maxLength": 3}]}, TEXT),
    "parts are joined": (
        {
            "allOf": [{"properties": {"a": TEXT}, "required": ["a"]}, {"properties": {"b": TEXT}, "required": ["b"]}],
            "properties": {"c": TEXT},
        },
        {"type": "object", "properties": {"a": TEXT, "b": TEXT, "c": TEXT}, "required": ["a", "b"]},
    ),
    "what is required is described": (
        {"type": "object", "properties": {"a": TEXT}, "required": ["a", "z"]},
        {"type": "object", "properties": {"a": TEXT}, "required": ["a"]},
    ),
    "null and empty texts are no options": (
        {"type": "object", "properties": {"a": {"enum": ["x", None]}, "b": {"enum": ["", "x"]}}},
        {"type": "object", "properties": {"a": {"type": "string", "enum": ["x"]}, "b": TEXT}},
    ),
    "what is no schema": (
        {"type": "object", "properties": {"a": {"allOf": None}, "b": {"anyOf": 5}, "c": {"enum": 5}, "d": True}},
        {"type": "object", "properties": dict.fromkeys("abcd", TEXT)},
    ),
}


@pytest.mark.feature("D7")
@pytest.mark.parametrize("case", CASES)
def test_a_schema_says_no_more_than_gemini_takes(case: str) -> None:
    given, plain = CASES[case]
    assert plain_schema(given) == plain
    assert plain_schema(plain) == plain


def test_parameters_without_properties_are_none() -> None:
    assert plain_parameters({"type": "object", "properties": {}}) == {}
    in_a_part = {"type": "object", "properties": {}, "allOf": [{"properties": {"a": TEXT}}]}
    assert plain_parameters(in_a_part) == {"type": "object", "properties": {"a": TEXT}}
