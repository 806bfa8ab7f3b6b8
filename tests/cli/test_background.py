"""The way into the background: what is shown on it reaches a terminal that has no such characters, too."""

from __future__ import annotations

import os
import subprocess
import sys

BEGIN = """
import contextlib, sys
from dimos_streams.cli.running.daemon import detach
detach(contextlib.ExitStack(), as_json=False)
for stream in (sys.stdout, sys.stderr):
    print("not ready \\u2026 \\u505c", file=stream)
"""


def test_what_a_terminal_has_no_characters_for_is_shown_by_numbers() -> None:
    ascii_only = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = subprocess.run(
        [sys.executable, "-c", BEGIN], env=ascii_only, capture_output=True, encoding="ascii", timeout=60, check=False
    )
    shown = "not ready \\u2026 \\u505c\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, shown, shown)
