"""Generated from lcm_types/dimos_streams/ToolStreamRequest.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class ToolStreamRequest(Message):
    """A reader's request to the one who publishes tool streams."""

    utime: int
    receiver: str
    kind: str
    call_id: str
    from_seq: int
    to_seq: int

    def __init__(
        self,
        *,
        utime: int = 0,
        receiver: str = "",
        kind: str = "",
        call_id: str = "",
        from_seq: int = 0,
        to_seq: int = 0,
    ) -> None: ...
