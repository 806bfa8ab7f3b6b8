"""Sessions of Zenoh: opened and closed in threads, none left behind at the end of the process."""

from __future__ import annotations

import asyncio
import atexit
import json
import logging
import os
import re
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dimos_streams.bus.zenoh_url import ZenohUrl
from dimos_streams.common.secrets import redacted
from dimos_streams.errors import BusError, UserError

if TYPE_CHECKING:
    import zenoh

T = TypeVar("T")

_LOCAL_LEASE_MS = 10_000
"""On one machine a link ends with its process; who is only stopped for a while keeps it."""
_LEASE_MS = 2_000
"""The silence after which a link between machines is cut; what was under way is thrown away then."""
_SCOUTING_MS = 200
"""The first peer of all waits so long for others."""
_CONNECT_MS = 1_000
_RETRY = {"period_init_ms": 200, "period_max_ms": 1_000, "period_increase_factor": 2}
"""How soon a link that was cut is tried again."""
_QUEUE = 16
"""Batches of 64 kB that wait for a link, for each priority: a raw picture is 15."""
_PRIORITIES = (
    "control",
    "real_time",
    "interactive_high",
    "interactive_low",
    "data_high",
    "data",
    "data_low",
    "background",
)
_FRAGMENT_WAIT_US = 1_000
"""How long what is larger than a batch may wait for room, all of it together, before it is dropped."""
_END_BOUND_S = 3.0
_SOURCE = re.compile(r" at \S+\.rs:\d+\.?")
"""Where in Zenoh's sources an error comes from."""

_logger = logging.getLogger(__name__)
_open: list[zenoh.Session] = []
_threads: list[threading.Thread] = []
_opened_in: int | None = None
"""The process in which sessions were opened: Zenoh's threads do not live on in a forked one, where opening hangs."""


def start_thread(run: Callable[[], None], name: str) -> threading.Thread:
    """Start a thread that ends with its session: one in Zenoh's code at the end of the process would abort it."""
    _threads[:] = [thread for thread in _threads if thread.is_alive()]
    thread = threading.Thread(target=run, name=name, daemon=True)
    _threads.append(thread)
    thread.start()
    return thread


def in_thread(function: Callable[[], T], name: str) -> asyncio.Future[T]:
    """Have a thread of its own call something that may take seconds."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    start_thread(run, name)
    return asyncio.wrap_future(future)


async def open_session(url: ZenohUrl) -> zenoh.Session:
    """An open session. Raises ``BusError``, and ``UserError`` where the extra is missing or a setting is wrong."""
    global _opened_in
    config = session_config(url)
    if _opened_in not in (None, os.getpid()):
        raise BusError(
            f"process {os.getpid()} was forked from one that has used Zenoh ({_opened_in}), whose sessions do not"
            " survive that; start it anew"
        )
    _opened_in = os.getpid()
    opening = in_thread(lambda: _opened(config, url), "zenoh-open")
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close_unwanted)
        raise


async def close_session(session: zenoh.Session, let_go: Callable[[], None]) -> None:
    """Close it in a thread, as that takes seconds when links are cut; ``let_go`` drops what was declared."""

    def close() -> None:
        let_go()
        _close(session)

    await in_thread(close, "zenoh-close")


def _opened(config: zenoh.Config, url: ZenohUrl) -> zenoh.Session:
    import zenoh

    try:
        session = zenoh.open(config)
    except zenoh.ZError as error:
        raise BusError(_explained(url, str(error))) from error
    _open.append(session)
    return session


def _close(session: zenoh.Session) -> None:
    session.close()  # type: ignore[no-untyped-call]
    with suppress(ValueError):
        _open.remove(session)


def _close_unwanted(opening: asyncio.Future[zenoh.Session]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        session = opening.result()
        start_thread(lambda: _close(session), "zenoh-close")


def _close_all() -> None:
    """A process hangs at its end if a session is still open, and may abort if a thread is still in Zenoh's code."""
    if _opened_in != os.getpid():
        return
    for session in tuple(_open):
        start_thread(partial(_close, session), "zenoh-close")
    for thread in tuple(_threads):
        thread.join(_END_BOUND_S)


atexit.register(_close_all)


def session_config(url: ZenohUrl) -> zenoh.Config:
    """Zenoh's settings for a URL. Raises ``UserError`` without the extra, or for a file that is none."""
    try:
        import zenoh
    except ImportError as error:
        raise UserError(
            f"bus {redacted(str(url))!r} needs Zenoh, which is not installed: pip install 'dimos-streams[zenoh]'"
        ) from error
    config = _from_file(url.files["config"]) if "config" in url.files else zenoh.Config()
    for name, value in _settings(url).items():
        config.insert_json5(name, json.dumps(value))
    if url.user:
        _let_in(config, url)
    return config


def _settings(url: ZenohUrl) -> dict[str, Any]:
    secure = any(name in url.files for name in ("ca", "cert"))
    scheme = "tls" if secure else "tcp"
    settings: dict[str, Any] = {
        "mode": url.mode,
        "connect/endpoints": [f"{scheme}/{address}" for address in url.endpoints],
        "listen/endpoints": [f"{scheme}/{address}" for address in url.listening],
        "scouting/multicast/enabled": url.scouting is not None,
        "scouting/multicast/interface": url.interface,
        "scouting/delay": _SCOUTING_MS,
        "scouting/gossip/enabled": True,  # without it peers drop what they can't name
        "transport/shared_memory/enabled": False,  # loses what is larger than 3 kB
        "transport/link/tx/lease": _LOCAL_LEASE_MS if url.is_local else _LEASE_MS,
        "transport/link/tx/queue/size": dict.fromkeys(_PRIORITIES, _QUEUE),
        "transport/link/tx/queue/congestion_control/drop/wait_before_drop": 0,
        "transport/link/tx/queue/congestion_control/drop/max_wait_before_drop_fragments": _FRAGMENT_WAIT_US,
    }
    if url.scouting is not None:
        settings["scouting/multicast/address"] = url.scouting
    if url.endpoints:
        settings["connect/timeout_ms"] = _CONNECT_MS if url.mode == "client" else -1
        settings["connect/exit_on_failure"] = url.mode == "client"
        settings["connect/retry"] = _RETRY
    if secure:
        settings |= _tls(url)
    return settings


def _tls(url: ZenohUrl) -> dict[str, Any]:
    files = url.files
    settings: dict[str, Any] = {}
    if "ca" in files:
        settings["transport/link/tls/root_ca_certificate"] = _readable(files["ca"], "ca")
    if "cert" in files:
        certificate, key = _readable(files["cert"], "cert"), _readable(files["key"], "key")
        for side in ("listen", "connect"):
            settings[f"transport/link/tls/{side}_certificate"] = certificate
            settings[f"transport/link/tls/{side}_private_key"] = key
        settings["transport/link/tls/enable_mtls"] = "ca" in files
    return settings


def _let_in(config: zenoh.Config, url: ZenohUrl) -> None:
    """Have both ends of a link know the user: who connects says the password, who listens compares it."""
    users = _readable(url.files["users"], "users") if "users" in url.files else _own_users(url)
    for name, value in (("user", url.user), ("password", url.password), ("dictionary_file", users)):
        config.insert_json5(f"transport/auth/usrpwd/{name}", json.dumps(value))


def _own_users(url: ZenohUrl) -> str:
    """A file with this one user, for this process only."""
    descriptor, path = tempfile.mkstemp(prefix="dimos-streams-", suffix=".users")
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{url.user}:{url.password}\n")
    atexit.register(_remove, path)
    return path


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


def _from_file(path: str) -> zenoh.Config:
    import zenoh

    try:
        return zenoh.Config.from_file(_readable(path, "config"))
    except zenoh.ZError as error:
        raise UserError(f"{path!r}, the 'config' of a zenoh bus, holds no settings of Zenoh: {error}") from error


def _readable(path: str, option: str) -> str:
    try:
        with Path(path).open("rb"):
            return path
    except OSError as error:
        raise UserError(f"{path!r}, the {option!r} of a zenoh bus, can't be read: {error.strerror}") from error


def _explained(url: ZenohUrl, why: str) -> str:
    shown, why = redacted(str(url)), redacted(_SOURCE.sub("", why))
    if url.endpoints and ("connect" in why.lower() or "timeout" in why.lower()):
        return f"bus {shown!r} can't be joined: nothing answers at {', '.join(url.endpoints)} ({why})"
    return f"Zenoh can't open bus {shown!r}: {why}"
