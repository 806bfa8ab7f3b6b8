"""Generated from lcm_types/tf2_msgs/*.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.tf2_msgs.TFMessage import TFMessage

__all__ = [
    "TFMessage",
]
