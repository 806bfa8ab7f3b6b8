"""A run's messages as they are shown, whether they come from a bus or out of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from dimos_streams.foxglove.call_table import CallTable
from dimos_streams.foxglove.form import Form, Scope, Value, robot_of_topic
from dimos_streams.foxglove.views import forms_of_message
from dimos_streams.messages.base import Message


class Conversion:
    """Makes of each message what viewers are shown of it, on which topic and by which schema."""

    def __init__(self, namespaces: Iterable[str] = ()) -> None:
        """``namespaces`` are those of the run's modules, which say whose a topic is."""
        self._namespaces = frozenset(namespaces)
        self._scopes: dict[str, Scope] = {}
        self._calls = CallTable()

    def shown(
        self, topic: str, message: Message, wants: Callable[[Form], bool] = lambda form: True
    ) -> Iterator[tuple[Form, Value]]:
        """A message in those of its forms that are wanted: what nobody wants is not made."""
        for form in forms_of_message(message, topic):
            if not wants(form):
                continue
            value = form.make(message, self._scope(topic))
            if value is not None:
                yield form, value

    def _scope(self, topic: str) -> Scope:
        if topic not in self._scopes:
            self._scopes[topic] = Scope(robot_of_topic(topic, self._namespaces), self._calls)
        return self._scopes[topic]
