"""Generated from lcm_types/builtin_interfaces/*.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.builtin_interfaces.Time import Time

__all__ = [
    "Time",
]
