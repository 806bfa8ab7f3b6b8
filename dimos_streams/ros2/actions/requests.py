"""Requests to an action server, as they leave for DDS."""

from __future__ import annotations

import logging
from typing import Any

from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.errors import MessageError, SkillError
from dimos_streams.ros2.actions.types import Channel
from dimos_streams.ros2.cdr import encode
from dimos_streams.ros2.wire import DdsError, TopicWriter

_log = LimitedLog(logging.getLogger(__name__))


def send_request(writer: TopicWriter, channel: Channel, value: dict[str, Any]) -> None:
    """Send a request. What can't be sent now is as one that got lost: it is sent again, or not answered.

    Raises ``SkillError`` for a value that the type can't hold.
    """
    try:
        writer.write(encode(channel.struct, value))
    except MessageError as error:
        raise SkillError(str(error)) from error
    except DdsError as error:
        _log.warning("%s", error)
