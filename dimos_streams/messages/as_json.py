"""Messages as JSON has them."""

from __future__ import annotations

import base64
import math
from typing import Any

from dimos_streams.messages.base import Message


def to_json_value(value: Any) -> Any:
    """A message as plain data, complete but for the fields that only size its arrays: bytes in base64, numbers that
    JSON does not have as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Message):
        return {field.name: to_json_value(getattr(value, field.name)) for field in value._content}
    if isinstance(value, (list, tuple)):
        return [to_json_value(item) for item in value]
    return base64.b64encode(value).decode() if isinstance(value, (bytes, bytearray)) else value
