"""Generated from lcm_types/dimos_streams/Hold.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class Hold(Message):
    """Somebody wants the robot still, or no longer. Repeated while it lasts, at least every 0.2 s."""

    utime: int
    source: str
    seq: int
    hold: bool
    valid_s: float
    reason: str

    def __init__(
        self,
        *,
        utime: int = 0,
        source: str = "",
        seq: int = 0,
        hold: bool = False,
        valid_s: float = 0.0,
        reason: str = "",
    ) -> None: ...
