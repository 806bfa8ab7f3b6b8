"""One channel of the bus for viewers: it is listened to while somebody watches what is shown of it."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from dimos_streams import clock
from dimos_streams.bus import Bus, Subscription
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.errors import MessageError
from dimos_streams.foxglove.channels import Channels, ShownChannel
from dimos_streams.foxglove.conversion.form import Form
from dimos_streams.foxglove.conversion.message_views import MessageViews
from dimos_streams.foxglove.conversion.views import forms_of, forms_of_message
from dimos_streams.messages.base import Message
from dimos_streams.messages.codec import decode, split_channel, type_named

_CAPACITY = 256
"""The largest number of messages that wait while the loop does something else; the newest are kept."""
_LARGE = 32 * 1024
"""The size in bytes above which messages are left out while viewers get less than is shown; smaller ones are dropped
behind it."""

_log = LimitedLog(logging.getLogger(__name__))


class ChannelFeed:
    """Shows the messages of one channel of the bus in the forms that are watched.

    Where it depends on a message how it is shown, its first one is waited for. So is that of a topic that has several
    types, of which mostly one is in use.
    """

    def __init__(
        self, bus: Bus, channel: str, channels: Channels, views: MessageViews, *, several: bool = False
    ) -> None:
        """``several`` says that the topic has other types besides. Raises ``MessageError`` for a type that is not
        known here."""
        self._bus = bus
        self._channel = channel
        self._channels = channels
        self._views = views
        self._topic, name = split_channel(channel)
        self._type: type[Message] = type_named(name, channel)
        self._shown: dict[Form, ShownChannel] = {}
        self._subscription: Subscription | None = None
        self.malformed = 0
        """The number of messages that could not be read."""
        if not several:
            self._advertise(forms_of(self._type, self._topic))

    def update(self) -> None:
        """Listen if somebody watches, or if nothing is known of how it is shown; else don't."""
        wanted = not self._shown or any(shown.watched for shown in self._shown.values())
        if wanted and self._subscription is None:
            self._subscription = self._bus.subscribe(self._channel, self._on_message, capacity=_CAPACITY)
        elif not wanted:
            self.close()

    def close(self) -> None:
        """Listen no more. Twice is fine."""
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            subscription.close()

    def _on_message(self, channel: str, data: bytes) -> None:
        if len(data) > _LARGE and not self._channels.keeps_up():
            return
        utime = clock.utime()
        try:
            message = decode(self._type, data, channel)
        except MessageError as error:
            self.malformed += 1
            _log.warning("not shown: %s", error)
            return
        self._advertise(forms_of_message(message, self._topic))
        for form, value in self._views.shown(self._topic, message, self._is_watched):
            self._shown[form].show(value, utime)
        self.update()

    def _advertise(self, forms: Iterable[Form]) -> None:
        for form in forms:
            if form not in self._shown:
                self._shown[form] = self._channels.advertise(self._topic + form.suffix, form.schema)

    def _is_watched(self, form: Form) -> bool:
        return self._shown[form].watched
