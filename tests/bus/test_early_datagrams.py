"""What comes before there is a packet filter is waited for until LCM's thread has let go of it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from dimos_streams.bus.lcm import early_datagrams, thread_placement
from dimos_streams.bus.lcm.early_datagrams import wait_until_taken
from dimos_streams.bus.lcm.thread_placement import is_runnable

pytestmark = pytest.mark.feature("F6")


@pytest.mark.parametrize(("state", "runnable"), [(b"R", True), (b"S", False)])
def test_a_thread_is_looked_at_whatever_bytes_its_name_has(
    state: bytes, runnable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "schedstat").write_text("1000 2000 3\n")
    (tmp_path / "7" / "stat").write_bytes(b"7 (run_\xe8\xb7) %b 1 %b\n" % (state, b" ".join([b"0"] * 48)))
    monkeypatch.setattr(thread_placement, "_TASKS", tmp_path)
    assert is_runnable(7) is runnable


def test_one_is_waited_for_until_the_thread_has_taken_it_and_is_done_with_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    left: list[Callable[[], object]] = [lambda: ours.recv(9), lambda: None, lambda: b"never"]
    """What the thread does from one look to the next: it takes the datagram, and is done with it."""
    monkeypatch.setattr(early_datagrams, "time", SimpleNamespace(sleep=lambda seconds: left.pop(0)()))
    monkeypatch.setattr(early_datagrams, "is_runnable", lambda thread: len(left) == 2)
    with ours, theirs:
        theirs.send(b"early")
        wait_until_taken([theirs.fileno(), ours.fileno()], thread=7)
        assert len(left) == 1
        assert not caplog.messages
        theirs.send(b"early")
        monkeypatch.setattr(early_datagrams, "_MOST_LOOKS", 1)
        wait_until_taken([ours.fileno()], thread=7)
    assert caplog.messages == ["what came to the bus before its packet filter was there may be taken for messages"]


def test_a_thread_is_runnable_while_it_has_something_to_do() -> None:
    assert is_runnable(threading.get_native_id())
    waiting = threading.Event()
    thread = threading.Thread(target=waiting.wait)
    thread.start()
    assert thread.native_id is not None
    while is_runnable(thread.native_id):
        pass
    waiting.set()
    thread.join()
    assert not is_runnable(2**30), "there is no such thread"
