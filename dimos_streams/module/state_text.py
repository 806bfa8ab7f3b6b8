"""The state that a module reports of itself, as a heartbeat carries it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from dimos_streams.common.json.losses import fault_in
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.secrets import redacted_values

MAX_STATE = 4000
"""Maximum size of what a module says of its own state, in bytes of JSON."""
_MAX_SHOWN = 200


def state_text(module: str, state: Mapping[str, Any], names: Collection[str]) -> str:
    """Return a module's state as JSON without secrets, which keys and ``names`` can't be; empty if it has none.

    Raises ``ValueError`` for what has no JSON form, or more than ``MAX_STATE`` bytes of it, and ``TypeError`` for
    what is no mapping.
    """
    if not isinstance(state, Mapping):
        what = shortened(repr(state), _MAX_SHOWN)
        raise TypeError(f"the state of module {module!r} can't be {what}: report values by their topics")
    shown = redacted_values(state, names)
    try:
        text = json.dumps(shown, separators=(",", ":"), allow_nan=False, ensure_ascii=False) if state else ""
    except (TypeError, ValueError, RecursionError) as error:
        why = f"{error}{fault_in(shown)}"
        raise ValueError(f"the state of module {module!r} has no JSON form: {why}") from error
    size = len(text.encode())
    if size > MAX_STATE:
        raise ValueError(f"the state of module {module!r} has {size} bytes, {MAX_STATE} are possible")
    return text
