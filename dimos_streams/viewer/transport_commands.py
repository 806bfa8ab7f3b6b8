"""A page's commands to the clock of a recording, over ``WS /transport``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from dimos_streams.common.invalid import in_a_line, problems_with_values
from dimos_streams.common.json.reading import parse_client_json
from dimos_streams.common.schemas.json_model import JsonModel
from dimos_streams.viewer.transport import FASTEST, SLOWEST


class Play(JsonModel):
    """Go on; from the beginning if it is at its end."""

    command: Literal["play"]


class PausePlayback(JsonModel):
    """Stand still."""

    command: Literal["pause"]


class Speed(JsonModel):
    """Go on at a multiple of the speed at which it was recorded."""

    command: Literal["speed"]
    speed: Annotated[float, Field(ge=SLOWEST, le=FASTEST, allow_inf_nan=False)]


class Seek(JsonModel):
    """Go to a moment."""

    command: Literal["seek"]
    utime: Annotated[int, Field(ge=-(2**53), lt=2**53)]
    """Time in µs since the Unix epoch; one outside of the recording is its beginning or end."""


class StepPlayback(JsonModel):
    """Go to the next event of a call, or to the one before, and stand there."""

    command: Literal["step"]
    back: bool = False


TransportCommand = Annotated[Play | PausePlayback | Speed | Seek | StepPlayback, Field(discriminator="command")]
_COMMANDS: TypeAdapter[TransportCommand] = TypeAdapter(TransportCommand)
_VALID = "valid: play, pause, speed (with speed), seek (with utime), step (with back)"


def transport_command(text: str | None) -> TransportCommand:
    """Return the command in a message's text, None standing for bytes. Raises ``ValueError`` that says what is wrong
    with the message, and what would be valid."""
    if text is None:
        raise ValueError(f"send text, not bytes; {_VALID}")
    try:
        return _COMMANDS.validate_python(parse_client_json(text))
    except ValidationError as error:
        raise ValueError(f"{in_a_line(problems_with_values(error, 'message'))}; {_VALID}") from error
    except ValueError as error:
        raise ValueError(f"not JSON: {error}; {_VALID}") from error
