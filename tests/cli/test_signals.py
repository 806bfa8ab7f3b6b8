"""Signals that end a command in order: how often somebody has to ask."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys

import pytest

from dimos_streams.cli.system import signals
from dimos_streams.cli.system.async_runner import run_async

_PIPE, _INT = signal.SIGPIPE, signal.SIGINT


@pytest.mark.parametrize(
    ("received", "hurries"),
    [((_INT, _PIPE), 0), ((_PIPE, _INT), 0), ((_INT, _PIPE, _INT), 1), ((_INT, _INT, _PIPE), 1)],
)
def test_only_who_asks_twice_is_in_a_hurry(received: tuple[signal.Signals, ...], hurries: int) -> None:
    """Ctrl-C in `run … | tee` ends tee, too: what is written then meets a broken pipe."""
    hurried: list[int] = []
    cleaned: list[str] = []

    async def main() -> None:
        for number in received[:1]:
            signals.deliver(number)
        try:
            await asyncio.Event().wait()
        finally:
            for number in received[1:]:
                signals.deliver(number)
            await asyncio.sleep(0)
            cleaned.append("in order")

    with pytest.raises(signals.Interrupted) as ended:
        run_async(main(), hurry=lambda: hurried.append(1))
    assert ended.value.exit_code == 128 + received[0]
    assert (len(hurried), cleaned) == (hurries, ["in order"])


_INTERRUPTED_IMPORT = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "dimos_streams.cli.exit_codes":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's `&` may have had ignored
sys.meta_path.insert(0, Interrupting())
from dimos_streams.cli import main
main()
"""


def test_ctrl_c_while_the_handler_itself_is_imported_shows_no_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_IMPORT], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
