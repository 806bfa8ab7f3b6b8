"""Generated from lcm_types/std_msgs/*.lcm by dimos_streams.messages.generate; do not edit."""

from dimos_streams.messages.std_msgs.Bool import Bool
from dimos_streams.messages.std_msgs.Header import Header
from dimos_streams.messages.std_msgs.String import String
from dimos_streams.messages.std_msgs.Time import Time

__all__ = [
    "Bool",
    "Header",
    "String",
    "Time",
]
