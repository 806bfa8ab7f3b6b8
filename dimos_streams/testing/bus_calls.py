"""Calls of a test that go over the bus, to the modules themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dimos_streams import clock
from dimos_streams.bus import Bus
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.tool_stream.event import CALLS, json_text


def request_call(
    bus: Bus, call_id: str, *, module: str, skill: str, caller: str, arguments: Mapping[str, Any]
) -> None:
    """Ask a module to begin a call, as a bridge would."""
    message = SkillCall(
        utime=clock.utime(),
        call_id=call_id,
        module=module,
        skill=skill,
        caller=caller,
        arguments_json=json_text(arguments),
    )
    bus.publish(CALLS, encode(message))
