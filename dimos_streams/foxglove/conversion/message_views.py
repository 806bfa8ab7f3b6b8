"""A run's messages as they are shown, whether they come from a bus or out of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from dimos_streams.common.names import namespace_of_topic
from dimos_streams.foxglove.call_table import TracedCalls
from dimos_streams.foxglove.conversion.form import Form, TopicContext, Value
from dimos_streams.foxglove.conversion.views import forms_of_message
from dimos_streams.messages.base import Message


class MessageViews:
    """Makes of each message what viewers are shown of it, on which topic and by which schema."""

    def __init__(self, namespaces: Iterable[str] = ()) -> None:
        """``namespaces`` are those of the run's modules, which say whose a topic is."""
        self._namespaces = frozenset(namespaces)
        self._contexts: dict[str, TopicContext] = {}
        self._calls = TracedCalls()

    def shown(
        self, topic: str, message: Message, wants: Callable[[Form], bool] = lambda form: True
    ) -> Iterator[tuple[Form, Value]]:
        """A message in those of its forms that are wanted: what nobody wants is not made."""
        for form in forms_of_message(message, topic):
            if not wants(form):
                continue
            value = form.make(message, self._context(topic))
            if value is not None:
                yield form, value

    def _context(self, topic: str) -> TopicContext:
        if topic not in self._contexts:
            self._contexts[topic] = TopicContext(namespace_of_topic(topic, self._namespaces), self._calls)
        return self._contexts[topic]
