"""A model's order to a robot that calls end, as the body of a command."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dimos_streams.common.names import MAX_NAME
from dimos_streams.common.schemas.json_model import JsonModel
from dimos_streams.tool_stream.gateway import MAX_ENDED_AT_ONCE
from dimos_streams.tool_stream.protocol.bounds import MAX_REASON

PATH = "/calls/cancel"
"""The path of the command."""
_Id = Annotated[str, Field(max_length=MAX_NAME)]


class ModelsCancel(JsonModel):
    """Body of a model's ``POST /calls/cancel``. Besides ending calls it keeps the model's own that wait at the robot
    from beginning, and motions that other models wait for."""

    calls: Annotated[tuple[_Id, ...], Field(max_length=MAX_ENDED_AT_ONCE)]
    """The calls that are to end. It names all of them, unlike an operator's order."""
    caller: Annotated[str, Field(pattern="^mcp/", max_length=MAX_NAME)]
    """The caller of the model's own calls."""
    reason: Annotated[str, Field(max_length=MAX_REASON)]
