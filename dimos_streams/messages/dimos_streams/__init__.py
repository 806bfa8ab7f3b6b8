"""Generated from lcm_types/dimos_streams/*.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.dimos_streams.ClockEcho import ClockEcho
from dimos_streams.messages.dimos_streams.Hold import Hold
from dimos_streams.messages.dimos_streams.ModuleStatus import ModuleStatus
from dimos_streams.messages.dimos_streams.SkillCall import SkillCall
from dimos_streams.messages.dimos_streams.SkillCancel import SkillCancel
from dimos_streams.messages.dimos_streams.ToolStreamEvent import ToolStreamEvent
from dimos_streams.messages.dimos_streams.ToolStreamRequest import ToolStreamRequest

__all__ = [
    "ClockEcho",
    "Hold",
    "ModuleStatus",
    "SkillCall",
    "SkillCancel",
    "ToolStreamEvent",
    "ToolStreamRequest",
]
