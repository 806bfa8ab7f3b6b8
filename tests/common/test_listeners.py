"""Listeners come and go, also while they are called."""

from __future__ import annotations

from dimos_streams.common.listeners import Listeners


def test_a_listener_that_is_removed_twice_takes_no_other_one_along() -> None:
    listeners, heard = Listeners[[]](), list[str]()
    remove = listeners.add(lambda: heard.append("first"))
    listeners.add(lambda: heard.append("second"))
    remove()
    remove()
    listeners.notify()
    assert heard == ["second"]


def test_a_listener_that_comes_while_others_are_called_is_called_the_next_time() -> None:
    listeners, heard = Listeners[[]](), list[str]()

    def grow() -> None:
        heard.append("first")
        listeners.add(lambda: heard.append("late"))

    listeners.add(grow)
    listeners.notify()
    assert heard == ["first"]
