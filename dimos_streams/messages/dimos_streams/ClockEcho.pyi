"""Generated from lcm_types/dimos_streams/ClockEcho.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import IntArray, Message

class ClockEcho(Message):
    """The clock of one machine of a run, and what it has heard of the others' clocks. Sent at least once in 2 s; from two that
have crossed follows how far one clock is ahead of the other, as with NTP's four stamps."""

    utime: int
    machine: str
    n_heard: int
    machines: list[str]
    sent: IntArray
    received: IntArray

    def __init__(
        self,
        *,
        utime: int = 0,
        machine: str = "",
        machines: list[str] = ...,
        sent: IntArray = ...,
        received: IntArray = ...,
    ) -> None: ...
