"""Generated from lcm_types/std_msgs/*.lcm by dimos_streams.messages.generate; do not edit."""
# ruff: noqa
# fmt: off

from dimos_streams.messages.std_msgs.Bool import Bool
from dimos_streams.messages.std_msgs.Duration import Duration
from dimos_streams.messages.std_msgs.Float32 import Float32
from dimos_streams.messages.std_msgs.Float64 import Float64
from dimos_streams.messages.std_msgs.Header import Header
from dimos_streams.messages.std_msgs.Int16 import Int16
from dimos_streams.messages.std_msgs.Int32 import Int32
from dimos_streams.messages.std_msgs.Int64 import Int64
from dimos_streams.messages.std_msgs.Int8 import Int8
from dimos_streams.messages.std_msgs.String import String
from dimos_streams.messages.std_msgs.Time import Time
from dimos_streams.messages.std_msgs.UInt16 import UInt16
from dimos_streams.messages.std_msgs.UInt32 import UInt32
from dimos_streams.messages.std_msgs.UInt64 import UInt64
from dimos_streams.messages.std_msgs.UInt8 import UInt8

__all__ = [
    "Bool",
    "Duration",
    "Float32",
    "Float64",
    "Header",
    "Int16",
    "Int32",
    "Int64",
    "Int8",
    "String",
    "Time",
    "UInt16",
    "UInt32",
    "UInt64",
    "UInt8",
]
