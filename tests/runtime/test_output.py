"""What a process prints, by whatever means of Python, shows no secret, and all of it comes out."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dimos_streams.cli.terminal.log_files import RunLogs
from dimos_streams.common.process.log_settings import log_bytes
from dimos_streams.common.secrets import REDACTED, know
from dimos_streams.errors import UserError
from dimos_streams.runtime.processes import output
from dimos_streams.runtime.processes.output import RedactedLines
from dimos_streams.runtime.processes.rotated_log import LogTail

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


def test_a_log_is_begun_anew_when_it_is_large_and_read_over_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "MAX_BYTES", 100)
    log = tmp_path / "logs" / "a.log"
    log.parent.mkdir()
    tail = LogTail(log)
    assert not list(tail.lines()), "there is none yet"
    told, whole = list[bytes](), ""
    with output.open_log(log) as first, output.open_log(log) as second:  # as while one process follows another
        for number in range(40):
            line = f"line {number:04}"
            print(line, file=second if number % 7 == 3 else first)
            whole += f"{line}\n"
            told += tail.lines()
    assert b"".join(b"%b\n" % line for line in told).decode() == whole, "each line once, in order"
    assert [path.name for path in sorted(log.parent.iterdir())] == ["a.log", "a.log.1"]
    assert all(0 < path.stat().st_size <= 100 for path in log.parent.iterdir())
    kept = b"".join(b"%b\n" % line for line in LogTail(log).lines()).decode()
    assert whole.endswith(kept)
    assert len(kept) == sum(path.stat().st_size for path in log.parent.iterdir())
    lines = list(RunLogs(tmp_path, None).new_lines())
    assert "".join(f"{line.raw}\n" for line in lines) == kept
    assert {line.process for line in lines} == {"a"}


def test_a_reader_of_a_log_says_where_lines_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "MAX_BYTES", 25)
    log = tmp_path / "a.log"
    tail = LogTail(log)
    with output.open_log(log) as file:
        print("line 0", file=file)
        assert list(tail.lines()) == [b"line 0"]
        for number in range(1, 9):
            print("line", number, file=file)  # three fill a file
    missing, *rest = tail.lines()
    assert b"lines may be missing here" in missing
    assert rest == [b"line %d" % number for number in range(3, 9)]
    assert not list(tail.lines())


def test_the_environment_sets_how_large_a_log_becomes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIMOS_STREAMS_LOG_MB", "2")
    log = tmp_path / "a.log"
    with output.open_log(log) as file:
        for _ in range(5):
            print("x" * 999_999, file=file)
    assert [path.stat().st_size for path in sorted(tmp_path.iterdir())] == [1_000_000, 2_000_000]
    for bad in ("", "0", "-1", "1.5", "much", "9" * 30):
        with pytest.raises(UserError, match=r"DIMOS_STREAMS_LOG_MB is .* valid: a whole number of MB"):
            log_bytes({"DIMOS_STREAMS_LOG_MB": bad}, 7)


def test_a_log_that_can_not_be_begun_anew_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "MAX_BYTES", 20)
    log = tmp_path / "a.log"
    (tmp_path / "a.log.1").mkdir()
    with output.open_log(log) as file:
        for _ in range(5):
            print("ten bytes", file=file)
    assert log.read_text() == "ten bytes\n" * 5


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
def test_what_is_no_python_writes_to_the_log_that_was_begun_anew(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from dimos_streams.runtime.processes import output;"
        "output.MAX_BYTES = 20; output.write_to(Path(sys.argv[1]));"
        "[print('ten bytes') for _ in range(3)]; os.write(1, b'out\\n'); os.write(2, b'err\\n')"
    )
    log = tmp_path / "a.log"
    subprocess.run([sys.executable, "-c", code, str(log)], check=True, timeout=30)
    assert log.read_text() == "ten bytes\nout\nerr\n"
    assert (tmp_path / "a.log.1").read_text() == "ten bytes\n" * 2


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
