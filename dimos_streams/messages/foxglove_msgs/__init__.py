"""Generated from lcm_types/foxglove_msgs/*.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.foxglove_msgs.CompressedVideo import CompressedVideo

__all__ = [
    "CompressedVideo",
]
