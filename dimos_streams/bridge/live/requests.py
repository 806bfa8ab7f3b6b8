"""The requests that a client of ``WS /live`` may send."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, ValidationError

from dimos_streams.common.invalid import in_a_line, problems_with_values
from dimos_streams.common.json.reading import parse_client_json
from dimos_streams.common.schemas.json_model import JsonModel

MAX_TOPICS = 64
"""Maximum number of topics that one client may watch at a time."""

_Name = Annotated[str, Field(max_length=200)]


class TopicRequest(JsonModel):
    """The request of a client for one topic: how it is to be shown."""

    max_hz: float | None = Field(default=None, ge=0.01, le=1000, allow_inf_nan=False)
    """Maximum number of frames a second."""


class Watch(JsonModel):
    """Watch these topics, and no others from now on."""

    watch: dict[_Name, TopicRequest] = Field(max_length=MAX_TOPICS)


class Seen(JsonModel):
    """The word that the newest frame of a topic is on the screen: the next one may come."""

    seen: _Name


_VALID = '{"watch": {TOPIC: {"max_hz": NUMBER}, …}} or {"seen": TOPIC}'


def parse_request(text: str | None) -> Watch | Seen:
    """Parse a message; None is for bytes. Raises ``ValueError`` that says what is wrong, and what is valid."""
    if text is None:
        raise ValueError(f"send text, not bytes; valid: {_VALID}")
    try:
        given = parse_client_json(text)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}; valid: {_VALID}") from error
    if not isinstance(given, dict) or len(given.keys() & {"watch", "seen"}) != 1:
        raise ValueError(f"not a request; valid: {_VALID}")
    kind = Watch if "watch" in given else Seen
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        problems = in_a_line(problems_with_values(error, "message"))
        raise ValueError(f"{problems}; valid: {_VALID}") from error
