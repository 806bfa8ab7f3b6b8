"""What a process prints, by whatever means of Python, shows no secret, and all of it comes out."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dimos_streams.common.secrets import REDACTED, know
from dimos_streams.runtime.processes.output import RedactedLines

SECRET = "sk-p1ant3d/key+7"
IN_LINES = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\n-----END KEY-----"

pytestmark = pytest.mark.feature("F6")


def lines() -> tuple[RedactedLines, io.BytesIO]:
    know(SECRET)
    know(IN_LINES)
    file = io.BytesIO()
    return RedactedLines(file, "utf-8"), file


def test_lines_show_no_secret_however_they_are_written() -> None:
    stream, file = lines()
    print("a", SECRET, "b", file=stream)
    for piece in ("c ", SECRET[:5], SECRET[5:] + " d\nrtsp://ann:", "pa55", "@h/\n"):
        stream.write(piece)
    print(IN_LINES, file=stream)
    stream.writelines(["e\n", f"{SECRET}\n"])
    shown = f"a {REDACTED} b\nc {REDACTED} d\nrtsp://{REDACTED}@h/\n{REDACTED}\ne\n{REDACTED}\n"
    assert file.getvalue().decode() == shown


def test_what_has_not_ended_waits_for_a_flush_or_until_it_is_long() -> None:
    stream, file = lines()
    assert stream.write("half a line sk-") == 15
    assert file.getvalue() == b""
    stream.flush()
    assert file.getvalue() == b"half a line sk-"
    print("50 %", end="\r", file=stream)
    assert file.getvalue().endswith(b"50 %\r")
    for _ in range(30_000):
        stream.write("x")
        stream.write(SECRET[:1])
    stream.write(SECRET[1:])
    written = file.getvalue()
    assert len(written) > 50_000
    print(file=stream)
    assert file.getvalue().count(b"xs") == 29_999
    assert file.getvalue().endswith(f"x{REDACTED}\n".encode())


def test_the_lines_of_several_threads_all_come_out() -> None:
    stream, file = lines()

    def write() -> None:
        for _ in range(500):
            stream.write(f"{SECRET} said\n")
            stream.flush()

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert file.getvalue().decode() == f"{REDACTED} said\n" * 2000


_MODULE = f"""
import sys, warnings
from pathlib import Path
from dimos_streams.common.secrets import know
from dimos_streams.runtime.processes import output
know({SECRET!r})
output.BEGIN
print("of", {SECRET!r})
warnings.warn("beware of " + {SECRET!r})
print("ends with", {SECRET!r}, end="", file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize("begin", ["write_to(Path(sys.argv[1]))", "guard_output()"])
def test_what_code_of_a_process_prints_and_warns_of_is_redacted(tmp_path: Path, begin: str) -> None:
    code = _MODULE.replace("BEGIN", begin)
    log = tmp_path / "a.log"
    done = subprocess.run(
        [sys.executable, "-c", code, str(log)], capture_output=True, text=True, check=True, timeout=30
    )
    shown = log.read_text() if log.exists() else done.stdout + done.stderr
    assert SECRET not in shown
    assert shown.startswith(f"of {REDACTED}\n")
    assert f"UserWarning: beware of {REDACTED}\n" in shown
    assert shown.endswith(f"ends with {REDACTED}")
