"""Generated from lcm_types/dimos_streams/SkillCall.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import Message

class SkillCall(Message):
    """Asks a module to run a skill."""

    utime: int
    call_id: str
    module: str
    skill: str
    caller: str
    parent: str
    arguments_json: str
    on_loss: str

    def __init__(
        self,
        *,
        utime: int = 0,
        call_id: str = "",
        module: str = "",
        skill: str = "",
        caller: str = "",
        parent: str = "",
        arguments_json: str = "",
        on_loss: str = "",
    ) -> None: ...
