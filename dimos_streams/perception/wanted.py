"""The descriptions that skills look for at the moment."""

from __future__ import annotations

from pydantic import TypeAdapter, ValidationError

from dimos_streams import clock
from dimos_streams.common.json.reading import well_formed_json
from dimos_streams.errors import MessageError

MAX_WANTED = 32
FORGET_AFTER_S = 3.0

_DESCRIPTIONS = TypeAdapter(list[str])


class Wanted:
    """Descriptions that somebody asked for within the last `FORGET_AFTER_S` seconds.

    Every skill repeats its own list while it runs, so lists add up, and what nobody repeats is forgotten. Of
    more than `MAX_WANTED` the ones that were asked for last stay."""

    def __init__(self) -> None:
        self._heard: dict[str, float] = {}

    def add(self, text: str) -> None:
        """Take in a JSON list of descriptions. Raises MessageError for anything else."""
        try:
            descriptions = _DESCRIPTIONS.validate_json(well_formed_json(text), strict=True)
        except ValidationError as error:
            raise MessageError(
                "wanted_descriptions", "std_msgs.String", f"no JSON list of texts: {text[:80]!r}"
            ) from error
        for description in filter(None, map(str.strip, descriptions)):
            self._heard.pop(description, None)
            self._heard[description] = clock.monotonic()
        self._heard = dict(list(self._heard.items())[-MAX_WANTED:])

    def now(self) -> tuple[str, ...]:
        """The descriptions, in alphabetical order."""
        since = clock.monotonic() - FORGET_AFTER_S
        self._heard = {text: heard for text, heard in self._heard.items() if heard >= since}
        return tuple(sorted(self._heard))
