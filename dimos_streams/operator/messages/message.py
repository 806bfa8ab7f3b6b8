"""The base class of all messages of the monitor, and the types of their fields."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from dimos_streams.tool_stream.event import MAX_NAME

MAX_TEXT = 4000
"""Characters of a text that an operator sends."""
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
OptionalName = Annotated[str, Field(max_length=MAX_NAME)]
Text = Annotated[str, Field(max_length=MAX_TEXT)]


class MonitorMessage(BaseModel):
    """Base: frozen, and a field that it does not know is an error. Validators are built when they are first needed:
    few processes need all.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
