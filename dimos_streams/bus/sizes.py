"""Maximum sizes of messages, by type too for transports that put large ones together, and of channels' names."""

from __future__ import annotations

MAX_MESSAGE = 8 * 1024 * 1024
"""Maximum size of a message, in bytes. Larger ones are not published, and are thrown away where they come in."""
ONE_PIECE = 65_000
"""Maximum size of a message that is one datagram, in bytes; it needs no memory for fragments of which others are
missing."""
MAX_CHANNEL_BYTES = 63
"""LCM's limit for the name of a channel, in UTF-8."""

_SMALL = frozenset(
    {
        "dimos_streams.Hold",
        "geometry_msgs.PoseStamped",
        "geometry_msgs.Twist",
        "nav_msgs.Odometry",
        "sensor_msgs.BatteryState",
        "sensor_msgs.CameraInfo",
    }
)
_MODERATE = frozenset({"sensor_msgs.LaserScan", "vision_msgs.Detection2DArray"})
_MODERATE_BYTES = 256 * 1024
"""Enough for 32,000 rays with their intensities."""


def largest_on(channel: str) -> int:
    """Return the maximum size of a channel's messages, in bytes. The sizes of what a process listens to decide which
    fragments of other messages it must keep: see ``guard.py``."""
    type_name = channel.partition("#")[2]
    if type_name in _SMALL:
        return ONE_PIECE
    return _MODERATE_BYTES if type_name in _MODERATE else MAX_MESSAGE
