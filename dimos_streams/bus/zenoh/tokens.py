"""Liveliness tokens of Zenoh: a process declares them of itself, and they vanish with its links."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from dimos_streams.bus.base import TokenHandler
from dimos_streams.bus.zenoh.session import in_thread

if TYPE_CHECKING:
    import zenoh

_LEVEL = "@alive"
"""The level of keys that is hidden from those who listen to all channels."""


def declare_token(session: zenoh.Session, prefix: str, name: str) -> Callable[[], None]:
    """Declare a token, and return a function that takes it back."""
    token = session.liveliness().declare_token(f"{prefix}/{_LEVEL}/{quote(name, safe='')}")
    return _once(token.undeclare)


def watch_tokens(session: zenoh.Session, prefix: str, handler: TokenHandler) -> Callable[[], None]:
    """Call ``handler`` on the running loop for tokens of others that are there, come or vanish, until the result is
    called."""
    from zenoh import SampleKind, handlers

    loop = asyncio.get_running_loop()
    ended = False

    def on_sample(sample: zenoh.Sample) -> None:
        name = unquote(str(sample.key_expr).rpartition("/")[2])
        with suppress(RuntimeError):  # the loop has been closed
            loop.call_soon_threadsafe(deliver, name, sample.kind == SampleKind.PUT)

    def deliver(name: str, is_there: bool) -> None:
        if not ended:
            handler(name, is_there)

    watching = handlers.Callback(on_sample, indirect=False)  # such samples are rare
    subscriber = session.liveliness().declare_subscriber(f"{prefix}/{_LEVEL}/*", watching, history=True)

    def end() -> None:
        nonlocal ended
        ended = True
        undeclare()

    undeclare = _once(subscriber.undeclare)
    return end


def _once(undeclare: Callable[[], None]) -> Callable[[], None]:
    """Return a function that undeclares in a thread, and only when it is called for the first time."""
    is_declared = True

    def take_back() -> None:
        nonlocal is_declared
        if is_declared:
            is_declared = False
            in_thread(undeclare, "zenoh-undeclare")

    return take_back
