"""The channels on which velocity gates listen to the bridge's own hold."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from dimos_streams.errors import DimosStreamsError
from dimos_streams.messages.codec import channel_name, split_channel
from dimos_streams.messages.dimos_streams import Hold


def usual_channels(namespaces: Iterable[str]) -> set[str]:
    """The channels on which the gates of these namespaces listen, unless their blueprint says otherwise."""
    channels = set()
    for namespace in namespaces:
        with contextlib.suppress(DimosStreamsError):  # a name that no topic can have: no gate listens there
            channels.add(channel_name(f"/{namespace}/hold" if namespace else "/hold", Hold))
    return channels


def is_hold_channel(channel: str) -> bool:
    """Return whether a channel that a gate names is one for holds; the name comes from outside."""
    try:
        topic, type_name = split_channel(channel)
        return bool(topic) and type_name == Hold.msg_name and channel == channel_name(topic, Hold)
    except DimosStreamsError:
        return False
