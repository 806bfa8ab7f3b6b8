"""Generated from lcm_types/dimos_streams/SkillCancel.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class SkillCancel(Message):
    """Asks for the end of a call."""

    utime: int
    call_id: str
    reason: str
    outcome: str

    def __init__(
        self,
        *,
        utime: int = 0,
        call_id: str = "",
        reason: str = "",
        outcome: str = "",
    ) -> None: ...
