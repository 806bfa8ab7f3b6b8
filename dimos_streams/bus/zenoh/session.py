"""Sessions of Zenoh: opened and closed in threads, none left behind at the end of the process."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import re
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from dimos_streams import clock
from dimos_streams.bus.packet_filter import open_fds
from dimos_streams.bus.zenoh.config import session_config
from dimos_streams.bus.zenoh.loopback_guard import keep_to_loopback
from dimos_streams.bus.zenoh.url import ZenohUrl
from dimos_streams.common.process.threads import begin_thread
from dimos_streams.common.secrets import redacted
from dimos_streams.errors import BusError

if TYPE_CHECKING:
    import zenoh

T = TypeVar("T")

_END_BOUND_S = 2.0
_SOURCE = re.compile(r" at \S+\.rs:\d+\.?")
"""The place in Zenoh's sources that an error message names."""

_PANIC = "PanicException"
"""The class of what Zenoh raises for want of threads or memory, which is no ``Exception`` and can't be imported."""

WHO_LETS_NOBODY_IN = "it has no such user, password or TLS, or a certificate is not in force by its clock"
"""The reasons for which one that can be reached takes no link; Zenoh itself only says that time has run out."""

_logger = logging.getLogger(__name__)
_open: list[zenoh.Session] = []
_threads: list[threading.Thread] = []
_opened_in: int | None = None
"""The process in which sessions were opened: Zenoh's threads do not live on in a fork, where opening hangs."""


def start_thread(run: Callable[[], None], name: str) -> threading.Thread:
    """Start a thread that ends with its session: one in Zenoh's code at the end of the process would abort it. Raises
    ``OSError`` if there is none."""
    _threads[:] = [thread for thread in _threads if thread.is_alive()]
    thread = threading.Thread(target=run, name=name, daemon=True)
    begin_thread(thread)
    _threads.append(thread)
    return thread


def see_out_in_thread(run: Callable[[], None], name: str) -> None:
    """Call a function that ends something, in a thread, or here if there is none: nobody else would end it."""
    try:
        start_thread(run, name)
    except OSError:
        run()


def in_thread(
    function: Callable[[], T], name: str, begin: Callable[[Callable[[], None], str], object] = see_out_in_thread
) -> asyncio.Future[T]:
    """Call a function that may take seconds, in a thread of its own, which ``begin`` starts."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    begin(run, name)
    return asyncio.wrap_future(future)


async def open_session(url: ZenohUrl) -> zenoh.Session:
    """Open a session. Raises ``BusError``, and ``UserError`` where the extra is missing or a setting is wrong."""
    global _opened_in
    if _opened_in not in (None, os.getpid()):
        raise BusError(
            f"process {os.getpid()} was forked from one that has used Zenoh ({_opened_in}), whose sessions do not"
            " survive that; start it anew"
        )
    _opened_in = os.getpid()
    try:
        opening = in_thread(lambda: _opened(url), "zenoh-open", start_thread)
    except OSError as error:
        raise BusError(f"Zenoh needs threads: {error.strerror}") from error
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close_unwanted)
        raise


async def close_session(session: zenoh.Session, let_go: Callable[[], None]) -> None:
    """Close a session in a thread, as that takes seconds when links are cut; ``let_go`` drops what was declared."""

    def close() -> None:
        let_go()
        _close(session)

    closing = in_thread(close, "zenoh-close")
    await asyncio.wait([closing], timeout=_END_BOUND_S)
    if not closing.done():
        _logger.warning("a session of Zenoh did not close within %g s: somebody does not answer", _END_BOUND_S)


def _opened(url: ZenohUrl) -> zenoh.Session:
    with session_config(url) as config:
        import zenoh

        before = open_fds()
        try:
            session = zenoh.open(config)
        except BaseException as error:
            if not isinstance(error, zenoh.ZError) and type(error).__name__ != _PANIC:
                raise
            raise BusError(_explained(url, str(error))) from error
    _open.append(session)
    if url.scouting is not None and url.interface == "lo":
        _keep_to_loopback(before, url.scouting)
    return session


def _keep_to_loopback(before: set[int], group: str) -> None:
    try:
        keep_to_loopback(before, group)
    except OSError as error:
        _logger.warning("answers to Zenoh's scouting are taken from other machines, too: %s", error)


def _close(session: zenoh.Session) -> None:
    import zenoh

    with suppress(ValueError):
        _open.remove(session)
    try:
        session.close()  # type: ignore[no-untyped-call]
    except zenoh.ZError as error:  # it is closed all the same, but for who does not answer
        _logger.warning("a session of Zenoh was not closed in order: %s", _SOURCE.sub("", str(error)))


def _close_unwanted(opening: asyncio.Future[zenoh.Session]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        session = opening.result()
        see_out_in_thread(lambda: _close(session), "zenoh-close")


def _close_all() -> None:
    """Close all sessions: a process hangs at its end if one is still open, and may abort if a thread is in Zenoh's
    code."""
    if _opened_in != os.getpid():
        return
    for session in tuple(_open):
        see_out_in_thread(partial(_close, session), "zenoh-close")
    until = clock.monotonic() + _END_BOUND_S
    for thread in tuple(_threads):
        thread.join(max(0.0, until - clock.monotonic()))


atexit.register(_close_all)


def _explained(url: ZenohUrl, why: str) -> str:
    shown, why = redacted(str(url)), redacted(_SOURCE.sub("", why))
    if url.endpoints and ("connect" in why.lower() or "timeout" in why.lower()):
        at = ", ".join(url.endpoints)
        return f"bus {shown!r} can't be joined: nothing answers at {at}, or {WHO_LETS_NOBODY_IN} ({why})"
    fixed = [address for address in url.listening if not address.endswith(":0")]
    every = "; each process of a run listens for itself: give the port 0" if fixed and "in use" in why else ""
    return f"Zenoh can't open bus {shown!r}: {why}{every}"
