"""Whether somebody holds the robot still: then a motion waits instead of being blocked."""

from __future__ import annotations

import json

from dimos_streams.messages.std_msgs import String
from dimos_streams.streams import In

_FRESH_S = 1.0


def is_held(hold: In[String]) -> bool:
    """Whether the newest word, repeated while it lasts, is to hold."""
    message, age = hold.latest, hold.age()
    if message is None or age is None or age > _FRESH_S:
        return False
    try:
        return json.loads(message.data)["hold"] is True
    except (ValueError, TypeError, KeyError):
        return False
