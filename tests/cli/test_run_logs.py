"""The logs of a run's processes, as one sequence of lines: for people and as JSON."""

from __future__ import annotations

import json
import logging
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dimos_streams.cli.terminal.log_files import LineReader, RunLogs, find_run_dir
from dimos_streams.common.printable import LogFormatter
from dimos_streams.common.process.run_owner import run_id_of
from dimos_streams.errors import UserError

AT = "2026-03-01 12:00:0"


def utime(second: int) -> int:
    return round(datetime(2026, 3, 1, 15, 30, second, 500_000, tzinfo=UTC).timestamp() * 1e6)


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "robot.log").write_text(
        f"starting up\n{AT}1,500-0330 INFO robot: ready\n"
        f"{AT}3,500-0330 ERROR robot: broken: wheel\n  | ValueError: \x1b[2J\n"
    )
    (tmp_path / "logs" / "agent.log").write_text(
        f"{AT}2,500-0330 WARNING agent.loop: slow\n{AT}9,500-0330 INFO agent: half a li"
    )
    return tmp_path


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_json_has_one_object_a_line_in_the_order_of_time(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RunLogs(run_dir, None, as_json=True).write_new()
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    fields = ("utime", "process", "level", "logger", "text")
    assert [tuple(line[name] for name in fields) for line in lines(printed)] == [
        (None, "robot", None, None, "starting up"),
        (utime(1), "robot", "INFO", "robot", "ready"),
        (utime(2), "agent", "WARNING", "agent.loop", "slow"),
        (utime(3), "robot", "ERROR", "robot", "broken: wheel"),
        (utime(3), "robot", None, None, "  | ValueError: \x1b[2J"),
    ]
    assert all(set(line) == set(fields) for line in lines(printed))


def test_the_last_words_of_a_run_that_has_ended_need_no_line_end(
    run_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", str(run_dir))
    RunLogs(run_dir, "agent").write_all()
    assert capsys.readouterr().out.splitlines()[-1] == f"{AT}9,500-0330 INFO agent: half a li"


def test_logs_are_merged_as_they_are_read(run_dir: Path) -> None:
    for process in ("robot", "agent"):
        text = "".join(
            f"{AT}{second},500-0330 INFO {process}: {'x' * 200}\n" for second in range(9) for _ in range(500)
        )
        (run_dir / "logs" / f"{process}.log").write_text(text)
    tracemalloc.start()
    try:
        seconds = [line.utime or 0 for line in RunLogs(run_dir, None).new_lines()]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert seconds == sorted(seconds)
    assert len(seconds) == 9000
    assert peak < 1_000_000, "the logs have 2 MB"


def test_json_goes_on_with_new_lines_of_the_process_asked_for(
    run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = RunLogs(run_dir, "agent", as_json=True)
    logs.write_new()
    with (run_dir / "logs" / "agent.log").open("a") as file:
        file.write(f"ne\nprinted\n2026-13-99 12:00:00,500-0330 INFO agent: no such day\n{AT}9,9")
    logs.write_new()
    assert [(line["utime"], line["text"]) for line in lines(capsys.readouterr().out)] == [
        (utime(2), "slow"),
        (utime(9), "half a line"),
        (utime(9), "printed"),
        (utime(9), "2026-13-99 12:00:00,500-0330 INFO agent: no such day"),
    ]


@contextmanager
def time_zone(name: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", name)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize("written", ["UTC", "EST5EDT,M3.2.0,M11.1.0", "<+0545>-5:45"])
def test_a_line_has_its_instant_wherever_it_is_read_and_in_the_hour_that_comes_twice(written: str) -> None:
    record = logging.LogRecord("gate", logging.INFO, "", 0, "ready", None, None)
    formatter = LogFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    for second in (1793511000, 1793514600):  # half past one, twice, on the East coast
        record.created, record.msecs = second + 0.25, 250
        with time_zone(written):
            line = formatter.format(record)
        with time_zone("JST-9"):
            assert LineReader("gate").line(line).utime == second * 1_000_000 + 250_000


def test_for_people_each_line_is_as_it_was_logged(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RunLogs(run_dir, None).write_new()
    assert capsys.readouterr().out.splitlines()[1:3] == [
        f"robot  {AT}1,500-0330 INFO robot: ready",
        f"agent  {AT}2,500-0330 WARNING agent.loop: slow",
    ]


def test_a_process_without_a_log_is_named_with_its_run(run_dir: Path) -> None:
    run = run_dir.rename(run_dir.parent / "0001764316003-warehouse-7")
    with pytest.raises(UserError, match=r"^no process 'robto' of run warehouse-7 has a log; did you mean 'robot'\?"):
        RunLogs(run, "robto")


def test_a_blueprints_name_means_its_newest_run_that_has_logged_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", str(tmp_path))
    for name, text in (
        ("1764316001000-rover-7", "went"),
        ("1764316002000-rover-8", ""),
        ("1764316003000-dock-9", ""),
    ):
        logs = tmp_path / "runs" / name / "logs"
        logs.mkdir(parents=True)
        (logs / "rover.log").write_text(text)
    assert [run_id_of(find_run_dir(name)) for name in (None, "rover", "rover-8", "dock")] == [
        "rover-7",
        "rover-7",
        "rover-8",
        "dock-9",
    ]
