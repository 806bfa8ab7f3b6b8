"""The contents of the first event of a call, besides its names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dimos_streams.common.names import MAX_NAME
from dimos_streams.skill import MAX_RESOURCES, OnLoss
from dimos_streams.tool_stream.protocol.call_ids import is_call_id


class Opening(NamedTuple):
    """The opening of a call: who asked for it, with which arguments, resources and policy."""

    parent: str
    arguments: dict[str, Any]
    resources: tuple[str, ...]
    on_loss: OnLoss


def opening_of(data: Mapping[str, Any]) -> Opening:
    """Return the opening in an event's data, which come from outside: what is not as it should be is left out, and so
    are more resources than a skill may name."""
    parent, arguments, resources = (data.get(name) for name in ("parent", "arguments", "resources"))
    return Opening(
        parent=parent if isinstance(parent, str) and is_call_id(parent) else "",
        arguments=arguments if isinstance(arguments, dict) else {},
        resources=tuple(filter(_is_resource, resources[:MAX_RESOURCES])) if isinstance(resources, list) else (),
        on_loss="continue" if data.get("on_loss") == "continue" else "stop",
    )


def _is_resource(use: Any) -> bool:
    return isinstance(use, str) and 0 < len(use) <= 2 * MAX_NAME  # a namespace stands before its name
