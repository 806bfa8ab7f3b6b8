"""Messages as plain JSON objects."""

from __future__ import annotations

from typing import Any

from dimos_streams.common.json.reading import parse_json
from dimos_streams.messages.base import Message, to_json_value


def plain(message: Message) -> dict[str, Any]:
    """A message as JSON has it, with what is JSON in it (``data_json``) decoded beside it (``data``)."""
    found: dict[str, Any] = to_json_value(message)
    for name, value in list(found.items()):
        if name.endswith("_json") and isinstance(value, str):
            try:
                found[name.removesuffix("_json")] = parse_json(value) if value else {}
            except ValueError:  # the text itself is there in any case
                continue
    return found
