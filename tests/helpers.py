"""Helpers that several test files share."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar, Unpack

import pytest

from dimos_streams import clock
from dimos_streams.bus import Bus, Handler, Subscription
from dimos_streams.bus.subscription import SubscriptionOptions
from dimos_streams.clock import VirtualTimeLoop, run_virtual
from dimos_streams.errors import BusError
from dimos_streams.tool_stream.event import ToolEvent

__all__ = [
    "NO_OTHER_PLUGINS",
    "anybody",
    "few_files",
    "fill",
    "hold_up",
    "no_threads",
    "open_files",
    "refuse_after",
    "run_virtual",
    "shut",
    "until",
    "wait_for",
]

T = TypeVar("T")

_BOUND_S, _VIRTUAL_BOUND_S = 40.0, 15.0
"""What takes longer hangs. A busy machine may take half a minute to start a process, which virtual time knows not."""

NO_OTHER_PLUGINS = tuple(
    word
    for plugin in ("anyio", "hypothesispytest", "timeout", "xdist", "xdist.looponfail")
    for word in ("-p", f"no:{plugin}")
)
"""For pytest as a user has it, who does not have these. To import them takes it longer than all else at its start."""


async def until(condition: Callable[[], object], timeout_s: float | None = None) -> None:
    """Wait until a condition holds that nobody signals. Raises ``TimeoutError`` after ``timeout_s``."""
    if timeout_s is None:
        timeout_s = _VIRTUAL_BOUND_S if clock.is_virtual() else _BOUND_S
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def wait_for(
    condition: Callable[[], T],
    timeout_s: float = _BOUND_S,
    why: Callable[[], object] = lambda: "it did not become true",
) -> T:
    """Return what a condition gives as soon as that is true, as ``until`` waits on a loop. Fails the test after
    ``timeout_s``, with what ``why`` gives."""
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline, why()
        time.sleep(0.02)
    return found


def hold_up(seconds: float) -> None:
    """Let the clock of virtual time go on while nothing runs, as SIGSTOP and SIGCONT do."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    loop._move_to(loop._now_ns + round(seconds * 1e9))


def anybody(event: ToolEvent) -> bool:
    """Says for a receiver that whoever writes on a call first may open it."""
    return True


@contextlib.contextmanager
def no_threads() -> Iterator[None]:
    """Let this process begin no thread meanwhile, as where a container has no more."""

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as system:
        system.setattr(threading.Thread, "start", refused)
        yield


def refuse_after(bus: Bus, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Have a bus take so many further subscriptions, and refuse those behind them."""
    left, subscribe = itertools.count(count, -1), bus.subscribe

    def limited(channel: str, handler: Handler, **options: Unpack[SubscriptionOptions]) -> Subscription:
        if next(left) <= 0:
            raise BusError("the bus refuses")
        return subscribe(channel, handler, **options)

    monkeypatch.setattr(bus, "subscribe", limited)


def fill(disk: Path) -> Path:
    """Take all the room that there is; the file that has it."""
    ballast = disk / "ballast"
    with ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        for block in (bytes(65536), bytes(512), b"\0"):
            with contextlib.suppress(OSError):
                while True:
                    file.write(block)
    return ballast


@contextlib.contextmanager
def shut(directory: Path) -> Iterator[None]:
    """Let nobody look into a directory, nor this process, root's or not, meanwhile."""
    user, mode = os.geteuid(), directory.stat().st_mode
    directory.chmod(0)
    if user == 0:
        os.seteuid(65534)  # root may look everywhere
    try:
        yield
    finally:
        os.seteuid(user)
        directory.chmod(mode)


def open_files() -> set[str]:
    """The paths of what this process has open, and the names of its sockets, of which no two are alike: whatever is
    closed meanwhile that others had opened, what is left open is among those that were not there before."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the one that has listed them
            found.add(os.readlink(f"/proc/self/fd/{name}"))
    return found


@contextlib.contextmanager
def few_files(free: int) -> Iterator[None]:
    """Let this process open no more than ``free`` further files, as a low ``ulimit -n`` does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = {int(name) for name in os.listdir("/proc/self/fd")}
    limit = next(itertools.islice((number for number in itertools.count() if number not in taken), free, None))
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
