"""Arguments of skills, as given on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dimos_streams.cli.terminal.argument_schemas import arguments_of
from dimos_streams.common.json.reading import is_finite, parse_command
from dimos_streams.errors import UserError


def parse_arguments(assignments: Iterable[str], as_json: str | None, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call's arguments from ``NAME=VALUE`` texts and a JSON object. Raises ``UserError``, also for a name
    that is given twice.

    Values are YAML; if the skill's schema wants a string, whatever is not quoted is one.
    """
    given = _json_object(as_json) if as_json is not None else {}
    schemas = arguments_of(schema)
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or not name.strip():
            raise UserError(f"--arg {assignment!r} is not of the form NAME=VALUE")
        _refuse_part(name.strip(), text, schemas)
        value = _value(text, schemas.get(name.strip(), {}), assignment)
        if not is_finite(value):
            raise UserError(f"--arg {assignment!r}: it must be finite; JSON has neither infinity nor NaN")
        if name.strip() in given:
            raise UserError(f"--arg {assignment!r}: {name.strip()!r} is given already; give each argument once")
        given[name.strip()] = value
    return given


def _refuse_part(name: str, text: str, schemas: Mapping[str, Any]) -> None:
    """Raise ``UserError`` for the name of a part of an argument, as the skill's description writes it."""
    whole, *parts = name.split(".")
    if parts and whole in schemas and name not in schemas:
        value = text
        for part in reversed(parts):
            value = f"{{{part}: {value}}}"
        raise UserError(f"--arg '{name}={text}': {whole!r} is given as a whole: --arg '{whole}={value}'")


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = parse_command(text)
    except ValueError as error:
        raise UserError(f"--args-json {text!r} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise UserError(f"--args-json {text!r} is not a JSON object")
    return value


def _value(text: str, schema: Mapping[str, Any], assignment: str) -> Any:
    from dimos_streams.documents.document import parse_document
    from dimos_streams.documents.problem import BlueprintError

    try:
        value = parse_document(text, "argument").data
    except BlueprintError as error:
        if _may_be("string", schema):
            return text
        why = error.problems[0].text
        raise UserError(f"--arg {assignment!r}: {why}; its skill takes no plain text there") from error
    if not text.strip() and not (_may_be("string", schema) or _may_be("null", schema)):
        raise UserError(f"--arg {assignment!r}: it is empty; its skill takes neither an empty text nor null there")
    return text if schema.get("type") == "string" and not isinstance(value, str) else value


def _may_be(kind: str, schema: Mapping[str, Any]) -> bool:
    """Return whether a schema may take a kind of value, as far as its types say."""
    options = schema.get("anyOf")
    if isinstance(options, list):
        return any(not isinstance(option, Mapping) or _may_be(kind, option) for option in options)
    types = schema.get("type", kind)
    return kind in types if isinstance(types, list) else types == kind
