"""The fields of messages that are JSON objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dimos_streams.common.json.depth import is_deeper
from dimos_streams.common.json.reading import parse_command, parse_json
from dimos_streams.errors import MessageError
from dimos_streams.tool_stream.protocol.bounds import MAX_ARGUMENTS_DEPTH, MAX_DATA_DEPTH


def arguments_object(text: str, channel: str, type_name: str) -> dict[str, Any]:
    """Return the arguments in a message's field, as ``json_object`` does; each of them is there once."""
    return json_object(text, channel, type_name, parse_command, MAX_ARGUMENTS_DEPTH)


def json_object(
    text: str,
    channel: str,
    type_name: str,
    parse: Callable[[str], Any] = parse_json,
    most_depth: int = MAX_DATA_DEPTH,
) -> dict[str, Any]:
    """Return the JSON object in a message's field; empty text is an empty object. Raises ``MessageError``."""
    if not text:
        return {}
    try:
        value = parse(text)
    except ValueError as error:
        raise MessageError(channel, type_name, f"bad JSON: {error}") from error
    if not isinstance(value, dict):
        raise MessageError(channel, type_name, f"JSON of type {type(value).__name__}, not an object")
    if is_deeper(text, most_depth):
        raise MessageError(channel, type_name, f"JSON nested more than {most_depth} deep")
    return value
