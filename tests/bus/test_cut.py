"""A tool stream between two machines whose link is cut for longer than either keeps a connection."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.namespaces import CUTS, INTERFACE, Link, Machine, linked

CUT_S = 8.0
PORT = 7447


@contextmanager
def end(machine: Machine, role: str, url: str) -> Iterator[subprocess.Popen[str]]:
    """One end of the stream, on one of the machines."""
    command = [sys.executable, "-m", "tests.bus.stream_end", role, url]
    with machine.entered():
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()


def urls(link: Link) -> tuple[str, str]:
    """Of two peers that find each other by the address of one."""
    here, there = link.here.address, link.there.address
    options = f"scout=off&interface={INTERFACE}"
    return f"zenoh:///?listen={here}:{PORT}&{options}", f"zenoh://{here}:{PORT}?listen={there}:0&{options}"


@pytest.mark.live
@pytest.mark.feature("G1")
def test_a_cut_of_8_s_loses_nothing_of_a_tool_stream() -> None:
    pytest.importorskip("zenoh", reason="the extra `zenoh` is not installed")
    with ExitStack() as stack:
        streams = {how: _stream(stack, stack.enter_context(linked())) for how in CUTS}
        with ExitStack() as cuts:
            for how, (link, _, _) in streams.items():
                cuts.enter_context(link.cut(how))
            time.sleep(CUT_S)
        for _, sender, receiver in streams.values():
            assert sender.stdin is not None
            assert receiver.stdout is not None
            print("enough", file=sender.stdin, flush=True)
            report = json.loads(receiver.stdout.readline())
            assert report["received"] == list(range(report["sent"]))
            assert report["sent"] > CUT_S


def _stream(stack: ExitStack, link: Link) -> tuple[Link, subprocess.Popen[str], subprocess.Popen[str]]:
    """A stream that flows over a link, its sender and its receiver."""
    here, there = urls(link)
    receiver = stack.enter_context(end(link.here, "receive", here))
    sender = stack.enter_context(end(link.there, "send", there))
    assert receiver.stdout is not None
    assert receiver.stdout.readline() == "flows\n"
    return link, sender, receiver
