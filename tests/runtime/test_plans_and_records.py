"""Plans, run directories and records, exit codes in words, facts: what a run keeps and says of itself."""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dimos_streams import clock
from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.model import Blueprint, ModuleSpec, Restart
from dimos_streams.common.process import run_owner
from dimos_streams.common.process.run_owner import pid_space, process_start
from dimos_streams.errors import UserError
from dimos_streams.module import Services
from dimos_streams.runtime import registry, run_directories
from dimos_streams.runtime.facts import run_facts
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.plan import context_for, plan_modules, plan_processes, shared_imports
from dimos_streams.runtime.processes.output import open_log
from dimos_streams.runtime.processes.process import describe_exit
from dimos_streams.runtime.registry import RunRecord
from tests.runtime.run_records import ended_process

POLICIES: list[Restart] = ["never", "on-failure", "always"]


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(["", "p", "q"]), st.sampled_from(POLICIES)), min_size=1, max_size=6))
def test_modules_of_one_label_share_a_process_with_the_most_persistent_policy(
    drawn: list[tuple[str, Restart]],
) -> None:
    specs = [
        ModuleSpec(name=f"m{i}", type="tests.runtime.modules:Talker", process=label or None, restart=policy)
        for i, (label, policy) in enumerate(drawn)
    ]
    blueprint = Blueprint(name="many", modules={spec.name: spec for spec in specs})
    plans = plan_processes(plan_modules(blueprint))
    labels = list(dict.fromkeys(spec.process or spec.name for spec in specs))
    assert [plan.label for plan in plans] == labels
    for plan in plans:
        own = [spec for spec in specs if (spec.process or spec.name) == plan.label]
        assert [module.spec for module in plan.modules] == own
        assert plan.restart == max((spec.restart for spec in own), key=POLICIES.index)


def test_modules_learn_what_the_run_was(tmp_path: Path) -> None:
    services = Services()
    options = RunOptions(
        bus_url="memq://", port=7001, seed=5, token="a-token-of-a-run", run_dir=tmp_path, loss_bound_s=9.0
    )
    plan = plan_modules(resolve("base-robot"))[0]
    context = context_for(options, services, plan)
    reported = (
        context.seed,
        context.bridge_url,
        context.token,
        context.run_dir,
        context.loss_bound_s,
        context.services,
    )
    assert reported == (5, "http://127.0.0.1:7001", "a-token-of-a-run", tmp_path, 9.0, services)
    with pytest.raises(UserError, match="the token of the run"):
        RunOptions(bus_url="memq://", token="no header\ncarries this")


def test_an_exit_in_words(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    assert describe_exit(-9, log) == "ended by SIGKILL"
    assert describe_exit(-40, log) == "ended by signal 40"
    assert describe_exit(3, None) == describe_exit(3, log) == "ended with exit code 3"
    log.write_text("")
    assert describe_exit(3, log) == "ended with exit code 3"
    log.write_text("first\n  the last line \n\n  \n")
    assert describe_exit(3, log) == "ended with exit code 3: the last line"
    log.write_bytes(b"x" * 10_000 + b"\nno \xff text")
    assert describe_exit(1, log) == "ended with exit code 1: no \ufffd text"
    log.write_text("y" * 10_000)
    assert describe_exit(1, log).removeprefix("ended with exit code 1: ") == "y" * 4096
    assert describe_exit(1, tmp_path) == "ended with exit code 1", "what can't be read says nothing"


def test_where_runs_write(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert run_directories.state_dir() == Path(os.environ["DIMOS_STREAMS_STATE_DIR"])
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", "")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert run_directories.state_dir() == tmp_path / "xdg" / "dimos-streams"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert run_directories.state_dir() == tmp_path / "home" / ".local" / "state" / "dimos-streams"


def test_a_run_s_directory_is_the_user_s_own_and_says_whose_it_is() -> None:
    directory = run_directories.new_run_dir("rover")
    assert stat.S_IMODE((directory / "logs").stat().st_mode) == 0o700
    owner = json.loads((directory / "owner.json").read_text())
    assert owner == {"directory": directory.name}
    milliseconds, name, pid = directory.name.split("-")
    assert (name, pid) == ("rover", str(os.getpid()))
    assert abs(int(milliseconds) - clock.utime() / 1000) < 60_000


def test_no_run_begins_where_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file")
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", str(taken))
    with pytest.raises(
        UserError, match=rf"^cannot write to {taken}/runs: .+; DIMOS_STREAMS_STATE_DIR can name another$"
    ):
        run_directories.new_run_dir("rover")
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", str(tmp_path))
    monkeypatch.setattr(run_owner, "OWNER_FILE", "no/such/folder")
    with pytest.raises(UserError, match="No such file"):
        run_directories.new_run_dir("rover")
    assert list((tmp_path / "runs").iterdir()) == [], "half a run is none"


def record(run_dir: Path, pid: int, started: int, **changed: object) -> RunRecord:
    fields: dict[str, object] = {
        "run_id": run_dir.name,
        "pid": pid,
        "pid_started": started,
        "pid_space": pid_space(),
        "blueprint": "rover",
        "bus_url": "memq://",
        "port": None,
        "started_utime": 1,
        "run_dir": run_dir,
    }
    return RunRecord.model_validate(fields | changed)


def test_of_the_runs_the_living_are_known_newest_first(caplog: pytest.LogCaptureFixture) -> None:
    own = process_start(os.getpid())
    assert own is not None
    living = []
    for number in (1, 2):
        path = run_directories.state_dir() / "runs" / f"{number}-rover"
        path.mkdir(parents=True)
        living.append(record(path, os.getpid(), own, token="secret-of-a-run"))
        registry.write(living[-1])
        assert stat.S_IMODE((path / "run.json").stat().st_mode) == 0o600
        assert [each.name for each in path.iterdir()] == ["run.json"]
    dead = run_directories.state_dir() / "runs" / "3-dead"
    dead.mkdir()
    registry.write(record(dead, *ended_process()))
    other = run_directories.state_dir() / "runs" / "4-number-taken-by-another"
    other.mkdir()
    registry.write(record(other, os.getpid(), own - 1))
    contained = run_directories.state_dir() / "runs" / "4-of-a-container-with-the-same-number"
    contained.mkdir()
    registry.write(record(contained, os.getpid(), own, pid_space="another boot pid:[1]"))
    damaged = run_directories.state_dir() / "runs" / "5-damaged"
    damaged.mkdir()
    (damaged / "run.json").write_text("{")
    (run_directories.state_dir() / "runs" / "6-folder" / "run.json").mkdir(parents=True)
    assert registry.runs() == living[::-1]
    changed = record(living[0].run_dir, os.getpid(), own, port=80)
    registry.write(changed)
    assert registry.runs() == [living[1], changed]
    registry.remove(living[1])
    registry.remove(living[1])
    assert registry.runs() == [changed]
    with caplog.at_level(logging.WARNING):
        registry.remove(record(run_directories.state_dir() / "runs" / "6-folder", 1, 1))
    assert "the run 6-folder can't be taken off the list" in caplog.text


def test_what_cannot_be_renewed_stays_as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = process_start(os.getpid())
    assert own is not None
    before = record(tmp_path, os.getpid(), own)
    registry.write(before)

    def refuse(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="No space left"):
        registry.write(record(tmp_path, os.getpid(), own, port=80))
    assert RunRecord.model_validate_json((tmp_path / "run.json").read_text()) == before
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["run.json"]


def test_whether_a_process_lives() -> None:
    own = process_start(os.getpid())
    assert own is not None
    assert registry.lives(os.getpid(), own)
    for pid, started in (
        (os.getpid(), own - 1),
        (os.getpid(), own + 1),
        ended_process(),
        (None, own),
        (os.getpid(), None),
    ):
        assert not registry.lives(pid, started)


def test_facts_are_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = run_facts()
    assert facts["numpy"] == version("numpy")
    assert facts["python"] == ".".join(map(str, sys.version_info[:3]))
    assert facts["machine"].startswith(f"{sys.platform} ")
    reported = dict(
        line.split("\t: ", 1)
        for line in Path("/proc/cpuinfo").read_text().split("\n\n")[0].split("\n")
        if "\t: " in line
    )
    reported = {key.strip(): value for key, value in reported.items()}
    if "model name" in reported:
        assert facts["processor"] == reported["model name"].strip()
    flags = reported.get("flags", "").split()
    assert facts["libm_features"].split() == [flag for flag in ("avx2", "fma", "fma4") if flag in flags]
    monkeypatch.setattr("dimos_streams.runtime.facts._PACKAGES", ("numpy", "no-such-package"))
    assert "no-such-package" not in run_facts()
    monkeypatch.setattr("dimos_streams.runtime.facts._PACKAGES", ())  # they are read from files as well
    monkeypatch.setattr(
        Path, "read_text", lambda *args, **kwargs: "model name : first\nflags : fma\n\nmodel name : x\n"
    )
    assert (run_facts()["processor"], run_facts()["libm_features"]) == ("first", "fma")


def test_a_log_that_can_t_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^log '.*' can't be written: Is a directory$"):
        open_log(tmp_path)
    log = tmp_path / "a.log"
    for word in ("one", "two"):
        with open_log(log) as file:
            print(word, file=file)
    assert log.read_text() == "one\ntwo\n"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


_PRINTS = """
import os, sys
from dimos_streams.runtime.processes.output import LossyFile, guard_output
guard_output()
kinds = [isinstance(getattr(stream.buffer, "raw", stream.buffer), LossyFile) for stream in (sys.stdout, sys.stderr)]
print(*kinds)
print("said", file=sys.stderr)
"""


@pytest.mark.slow
def test_only_output_that_goes_to_a_file_may_lose_lines(tmp_path: Path) -> None:
    for name in ("stdout", "stderr"):
        with (tmp_path / name).open("wb") as file:
            streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, name: file}
            done = subprocess.run([sys.executable, "-c", _PRINTS], check=True, timeout=30, **streams)  # type: ignore[call-overload]
        outputs = {"stdout": done.stdout, "stderr": done.stderr, name: (tmp_path / name).read_bytes()}
        kinds = outputs["stdout"].decode().split()
        assert kinds == [str(name == "stdout"), str(name == "stderr")]
        assert outputs["stderr"] == b"said\n"


def test_what_several_processes_import_of_the_library_is_imported_once() -> None:
    shared = shared_imports(plan_processes(plan_modules(resolve("two-robots"))))
    assert {"mujoco", "dimos_streams.robot.simulator", "dimos_streams.agent.module"} <= set(shared)
    assert not any(name.startswith(("dimos_streams.skills", "dimos_streams.bridge")) for name in shared)
    of_one_robot = shared_imports(plan_processes(plan_modules(resolve("follow-person"))))
    assert not any(name.startswith("dimos_streams") for name in of_one_robot)


def test_a_robot_of_many_has_three_processes_and_its_gate_and_simulator_share_with_nobody() -> None:
    plans = plan_processes(plan_modules(resolve("two-robots")))
    names = {plan.label: len(plan.modules) for plan in plans if plan.robot == "robot2"}
    assert names == {"robot2/robot": 1, "robot2/gate": 1, "robot2/skills": 6}
    assert [plan.robot for plan in plans if plan.label == "bridge"] == [""]


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(UserError, match=r"^the seed of the run is -1: it must be at least 0$"):
        RunOptions(seed=-1)


def test_modules_know_the_agents_of_all_machines() -> None:
    options = RunOptions(bus_url="memq://", agents=frozenset({"other/agent"}))
    for plan in plan_modules(resolve("follow-person")):
        assert context_for(options, Services(), plan).agents == {"agent", "other/agent"}
