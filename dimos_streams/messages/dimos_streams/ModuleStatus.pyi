"""Generated from lcm_types/dimos_streams/ModuleStatus.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.base import IntArray, Message

class ModuleStatus(Message):
    """Heartbeat of a module. The lists have one entry per live call."""

    utime: int
    module: str
    instance: str
    pid: int
    host: str
    started_utime: int
    health: str
    skills_version: str
    skills_json: str
    n_calls: int
    call_ids: list[str]
    last_seqs: IntArray
    state_json: str

    def __init__(
        self,
        *,
        utime: int = 0,
        module: str = "",
        instance: str = "",
        pid: int = 0,
        host: str = "",
        started_utime: int = 0,
        health: str = "",
        skills_version: str = "",
        skills_json: str = "",
        call_ids: list[str] = ...,
        last_seqs: IntArray = ...,
        state_json: str = "",
    ) -> None: ...
