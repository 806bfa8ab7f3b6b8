"""The troubles of the link to a hub: each is logged once, however often it is tried again."""

from __future__ import annotations

import logging

from dimos_streams.common.secrets import redacted


class Troubles:
    """The troubles of the link's parts, each of which tries again by itself."""

    def __init__(self, log: logging.Logger, hub: str) -> None:
        self._log = log
        self._hub = hub
        self._now: dict[str, str] = {}

    @property
    def text(self) -> str:
        """The present troubles; empty if there are none."""
        return "; ".join(dict.fromkeys(self._now.values()))

    def begin(self, part: str, text: str) -> None:
        """Note that a part of the link does not work. It is logged unless some part has said the same already.

        What a hub, or a proxy before it, says may have the token in it that it was sent.
        """
        text = redacted(text)
        if text not in self._now.values():
            self._log.warning(
                "the hub %s: %s; the run goes on, and what is new is kept in the journal", self._hub, text
            )
        self._now[part] = text

    def end(self, part: str) -> None:
        """Note that a part of the link works again."""
        if self._now.pop(part, None) is not None and not self._now:
            self._log.warning("the hub %s is back", self._hub)
