"""The channels of calls and their events, and the kinds of requests on one of them."""

from __future__ import annotations

from dimos_streams.messages.codec import channel_name
from dimos_streams.messages.dimos_streams import (
    ModuleStatus,
    SkillCall,
    SkillCancel,
    ToolStreamEvent,
    ToolStreamRequest,
)

EVENTS = channel_name("/tool_streams", ToolStreamEvent)
REQUESTS = channel_name("/tool_stream_requests", ToolStreamRequest)
CALLS = channel_name("/skill_calls", SkillCall)
CANCELS = channel_name("/skill_cancels", SkillCancel)
STATUS = channel_name("/module_status", ModuleStatus)
OF_CALLS = (EVENTS, STATUS, CALLS, CANCELS, REQUESTS)
"""The channels on which modules speak of calls and of themselves, in every run."""

ACK, NACK, GONE, DESCRIBE, PENDING = "ack", "repair", "gone", "describe", "pending"
"""Kinds of a ``ToolStreamRequest``, as they are called on the wire: events have come; events are to be sent again;
they are not kept any more (a publisher's answer); modules are to say what skills they have; a call waits for what it
needs to begin (the bridge's answer)."""

PARENT = "parent"
"""The name under which the host of a parent acknowledges what it has of a child: a child has one, and its other
receivers don't wait for that."""
