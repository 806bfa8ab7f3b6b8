"""The ids of calls."""

from __future__ import annotations

import functools
import re

from dimos_streams.common.names import MAX_NAME

CALL_ID_RULE = f"valid: up to {MAX_NAME} letters, digits and ._~:-, with a letter, a digit or _ first"
_CALL_ID = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9._~:-]{{0,{MAX_NAME - 1}}}")


def is_call_id(text: str) -> bool:
    """Return whether a text may be the id of a call. An id is part of a URL's path: with a slash in it, or as ``..``,
    nobody could ask for the call over HTTP, or end it."""
    return len(text) <= MAX_NAME and _has_form_of_call_id(text)


@functools.lru_cache(maxsize=1024)  # it comes with every event of a call
def _has_form_of_call_id(text: str) -> bool:
    return _CALL_ID.fullmatch(text) is not None
