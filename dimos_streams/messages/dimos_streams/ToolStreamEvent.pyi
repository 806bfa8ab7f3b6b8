"""Generated from lcm_types/dimos_streams/ToolStreamEvent.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class ToolStreamEvent(Message):
    """One event of a call's tool stream."""

    utime: int
    call_id: str
    seq: int
    type: str
    module: str
    skill: str
    caller: str
    text: str
    data_json: str

    def __init__(
        self,
        *,
        utime: int = 0,
        call_id: str = "",
        seq: int = 0,
        type: str = "",
        module: str = "",
        skill: str = "",
        caller: str = "",
        text: str = "",
        data_json: str = "",
    ) -> None: ...
