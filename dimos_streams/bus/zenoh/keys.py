"""The keys of Zenoh on which channels are. They have the form of dimos' own: ``PREFIX/topic/package.Type``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

_TYPE = re.compile(r"[A-Za-z_]\w*\.[A-Za-z_]\w*")
_SPECIAL = re.compile(r"[%*$?#]")
"""Characters that keys can't have, or that have a meaning there, and the one that escapes them here."""
_EMPTY, _RELATIVE = "%", "%%"
"""A level without a name, and the first one of a channel that does not begin with a slash."""


@dataclass(frozen=True, slots=True)
class KeySpace:
    """The mapping of channels to keys and back, one to one.

    ``/robot1/cmd_vel#geometry_msgs.Twist`` is ``PREFIX/robot1/cmd_vel/geometry_msgs.Twist``. Another mapping would be
    another class with the same four members.
    """

    prefix: str
    """The beginning of all keys. With ``"dimos"`` they are those of dimos."""

    @property
    def everything(self) -> str:
        """The key expression of all channels."""
        return f"{self.prefix}/**"

    def key_of(self, channel: str) -> str:
        """Return the key of a channel. Characters that keys can't have are written as in URLs: ``%2A``."""
        topic, sharp, type_name = channel.rpartition("#")
        if not sharp or not _TYPE.fullmatch(type_name):
            topic, type_name = channel, ""
        head = [] if topic.startswith("/") else [_RELATIVE]
        escaped = [_escaped(level) for level in topic.removeprefix("/").split("/")]
        if not type_name and _TYPE.fullmatch(escaped[-1]):
            escaped[-1] = escaped[-1].replace(".", "%2E")  # it is no type
        return "/".join((self.prefix, *head, *escaped, *filter(None, [type_name])))

    def channel_of(self, key: str) -> str | None:
        """Return the channel of a key below the prefix, or None if it is that of none. With a second key a channel
        would get past whoever allows by keys what may be said."""
        channel = self._read(key)
        return channel if channel and channel.isprintable() and self.key_of(channel) == key else None

    def _read(self, key: str) -> str:
        levels = key.removeprefix(f"{self.prefix}/").split("/")
        type_name = levels.pop() if len(levels) > 1 and _TYPE.fullmatch(levels[-1]) else ""
        first = "/"
        if levels[0] == _RELATIVE:
            first, levels = "", levels[1:]
        topic = first + "/".join("" if level == _EMPTY else unquote(level) for level in levels)
        return f"{topic}#{type_name}" if type_name else topic


def _escaped(level: str) -> str:
    if not level:
        return _EMPTY
    escaped = _SPECIAL.sub(lambda match: f"%{ord(match[0]):02X}", level)
    return f"%40{escaped[1:]}" if escaped.startswith("@") else escaped  # such levels are hidden from `**`
