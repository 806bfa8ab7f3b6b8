"""The types of the fields of the monitor's messages."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dimos_streams.common.names import MAX_NAME

MAX_TEXT = 4000
"""Characters of a text that an operator sends."""
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
OptionalName = Annotated[str, Field(max_length=MAX_NAME)]
Text = Annotated[str, Field(max_length=MAX_TEXT)]
