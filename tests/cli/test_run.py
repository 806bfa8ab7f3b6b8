"""run: its ways to end, and that nothing is left afterwards."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.machine import ROVER, Machine, read_until
from tests.helpers import wait_for
from tests.ports import free_port


def run_of(machine: Machine, *more: str) -> list[str]:
    return ["run", ROVER, "--port", str(machine.port), *more]


def pid_of(machine: Machine, label: str) -> int:
    (state,) = machine("status", "--json").json
    (pid,) = (view["pid"] for view in state["processes"] if view["label"] == label)
    return int(pid)


def how_it_ended(machine: Machine) -> str:
    """What `status --all` says of the newest run that has ended, and has been that of the rover."""
    ended = machine("status", "--all", "--json").json["ended"][-1]
    assert ended["blueprint"] == "rover"
    assert 0 < ended["ended_utime"] - ended["began_utime"] < 60e6
    return str(ended["how"])


@pytest.mark.live
def test_duration_ends_open_calls_with_the_reason(machine: Machine) -> None:
    with machine.started_warm(*run_of(machine, "--duration", "4")) as process:
        read_until(process, "bridge http")
        assert machine("call", "wander", "--wait", "answer").code == 0
        rest, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "wander            cancelled: the run's duration of 4 s is over" in rest
    assert re.search(r"ran 4\.\d s; 1 call: 1 cancelled\n$", rest)
    assert machine.leaves_nothing()
    assert how_it_ended(machine) == "the run's duration of 4 s is over"


@pytest.mark.live
@pytest.mark.parametrize("mode", ["live", "--in-process"])
def test_the_port_that_was_free_is_known_to_commands_and_agents(machine: Machine, mode: str) -> None:
    more = [] if mode == "live" else [mode]
    started = machine("run", ROVER, "--set", "bridge.port=0", "--daemon", *more)
    assert started.code == 0, started.err
    assert re.search(r"http://127\.0\.0\.1:[1-9]", started.out)
    assert machine("status", "--ready").code == 0
    assert "Moving" in machine("say", "move 0.2 m").out
    assert "every robot is stopped" in machine("stop-robot").out
    stopped = machine("status", "--ready")
    assert (stopped.code, "STOPPED every robot" in stopped.out, stopped.err) == (0, True, "")
    assert machine("stop").code == 0
    assert machine.leaves_nothing()


@pytest.mark.live
def test_exit_when_done(machine: Machine) -> None:
    result = machine(*run_of(machine, "--say", "move 0.2 m", "--exit-when-done"))
    assert (result.code, result.err) == (0, "")
    assert "completed: Moved 0.2 m fast" in result.out
    assert result.out.endswith("1 call: 1 completed\n")
    assert machine.leaves_nothing()
    assert how_it_ended(machine) == "all that was said is over (exit code 0)"


@pytest.mark.live
def test_run_for_scripts(machine: Machine) -> None:
    result = machine(*run_of(machine, "--say", "move 0.2 m", "--exit-when-done", "--json", "--log-stdout"))
    lines = result.json_lines
    kinds = [line["kind"] for line in lines]
    assert kinds[-1] == "summary"
    (served,) = [line for line in lines if line["kind"] == "log" and "serving on" in line["text"]]
    assert (served["process"], served["level"], served["logger"]) == ("bridge", "INFO", "dimos_streams.module.bridge")
    shown = [line["text"] for line in machine("logs", "--json").json_lines]
    assert [line["text"] for line in lines if line["kind"] == "log"] == shown, "the same as `logs`, each line once"
    assert lines[-1]["calls"] == {"completed": 1}
    assert {"module", "ready", "event"} <= set(kinds)


@pytest.mark.live
def test_in_process(machine: Machine) -> None:
    result = machine(*run_of(machine, "--in-process", "--say", "move 0.2 m", "--exit-when-done"))
    assert (result.code, result.err) == (0, "")
    assert "completed: Moved 0.2 m fast" in result.out


@pytest.mark.live
def test_what_others_have_begun_ends_with_a_run_that_is_done(machine: Machine) -> None:
    run = run_of(machine, "--in-process", "--say", "move 1000 m", "--exit-when-done")
    with machine.started_warm(*run) as process:
        read_until(process, "Moving")
        assert machine("call", "wander", "--wait", "answer").code == 0
        read_until(process, "Wandering")  # the command has heard of the call, too
        (move,) = (call["call_id"] for call in machine("calls", "--json").json if call["skill"] == "move")
        assert machine("cancel", move).code == 0
        rest, _ = process.communicate(timeout=60)
    assert process.returncode == 1, "what was said has not completed"
    assert "wander            cancelled: all that was said is over" in rest


@pytest.mark.feature("A10")
@pytest.mark.live
def test_a_blueprint_without_a_bridge_shows_what_is_on_the_bus(machine: Machine) -> None:
    result = machine("run", "tests.cli.blueprints:self_starting", "--duration", "1")
    assert result.code == 0
    assert "wander            … wandering" in result.out
    assert "wander            cancelled: the run's duration of 1 s is over" in result.out


def test_virtual_time_is_the_same_every_time(machine: Machine) -> None:
    arguments = ["run", ROVER, "--virtual-time", "--say", "move 100 m", "--exit-when-done", "--json"]
    first, second = machine.cold(*arguments), machine.cold(*arguments)
    assert first.code == second.code == 0
    assert first.json_lines[:-1] == second.json_lines[:-1]
    summary = first.json_lines[-1]
    assert summary["ran_s"] >= 50
    assert summary["wall_s"] < 10


def test_virtual_time_with_a_duration(machine: Machine) -> None:
    result = machine("run", ROVER, "--virtual-time", "--say", "move 1000 m", "--duration", "60")
    assert result.code == 0
    assert re.search(r"   60\.\d\d  move              cancelled: the run's duration of 60 s is over\n", result.out)
    assert "times as fast as real time; 1 call: 1 cancelled" in result.out


@pytest.mark.live
@pytest.mark.parametrize("line", ["starting rover", "rover ", "bridge ", "agent ", "http://"])
def test_ctrl_c_at_any_moment_leaves_nothing(machine: Machine, line: str) -> None:
    with machine.started(*run_of(machine)) as process:
        read_until(process, line)
        os.killpg(process.pid, signal.SIGINT)
        rest, _ = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in rest
    assert machine.leaves_nothing()
    assert machine("status", "--json").json == []


@pytest.fixture
def heeded() -> Iterator[None]:
    """Commands heed SIGHUP, also if these tests run with nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.live
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.usefixtures("heeded")
def test_a_signal_to_the_whole_group_stops_it_and_restarts_nothing(machine: Machine, number: signal.Signals) -> None:
    """As shells and terminals send it: to the supervisor, to its workers, and to the server that forks them."""
    with machine.started(*run_of(machine)) as process:
        read_until(process, "http://")
        assert machine("call", "move", "--arg", "distance_m=100", "--wait", "answer").code == 0
        os.killpg(process.pid, number)
        rest, _ = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert "restarting" not in rest
    assert "exit code" not in rest
    assert "Traceback" not in rest
    assert machine.leaves_nothing()


@pytest.mark.live
@pytest.mark.feature("F5")
@pytest.mark.parametrize("way", ["live", "in-process"])
def test_a_second_run_on_one_bus_is_refused_in_one_line(machine: Machine, way: str) -> None:
    with machine.started_warm(*run_of(machine)) as process:
        read_until(process, "http://")
        began = machine("status", "--json").json[0]
        more = ["--in-process"] if way == "in-process" else []
        second = machine("run", ROVER, "--port", str(free_port()), *more)
        assert second.code == 2
        (line,) = [line for line in second.err.splitlines() if "runs already" in line]
        assert f"runs already on {machine.bus}" in line
        assert any(f"pid {each['pid']} on " in line for each in began["processes"])
        assert "Traceback" not in second.err
        done = machine("call", "move", "--arg", "distance_m=0.1")
        assert done.code == 0, "the first one is as it was"
        assert machine("stop", "rover").code == 0


@pytest.mark.live
def test_ctrl_c_twice_hurries(machine: Machine) -> None:
    with machine.started_warm(*run_of(machine)) as process:
        read_until(process, "http://")
        os.killpg(process.pid, signal.SIGINT)
        os.killpg(process.pid, signal.SIGINT)
        rest, _ = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in rest


@pytest.mark.live
def test_stop(machine: Machine) -> None:
    with machine.started_warm(*run_of(machine)) as process:
        read_until(process, "http://")
        stopped = machine("stop", "rover")
        assert stopped.code == 0
        assert stopped.out.endswith("has stopped\n")
        assert process.wait(20) == 143
    assert machine.leaves_nothing()
    assert re.search(r"the last run here, rover-\d+, ended \S+ \S+: stopped \(.* --all` ", machine("status").err)
    names, row = machine("status", "--all").out.splitlines()
    run_id = re.sub(" has stopped\n", "", stopped.out)
    assert names.split() == ["RUN", "BEGAN", "ENDED", "HOW", "LOGS"]
    assert re.fullmatch(rf"{run_id}(  \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d){{2}}  stopped  {machine.state}/\S+/logs", row)
    assert machine("logs", run_id).out, "it is called so by other commands, too"


@pytest.mark.live
def test_a_module_that_cannot_start(machine: Machine) -> None:
    for more in ([], ["--in-process"], ["--daemon"], ["--log-stdout"]):
        result = machine(*run_of(machine, "--set", "rover.fail_at_start=no wheels", *more))
        assert ("Traceback" in result.out) == ("--log-stdout" in more), "why it failed is in a log"
        assert result.code == 1
        assert "no wheels" in result.err.splitlines()[-1]
        assert "Traceback" not in result.err
        assert machine.leaves_nothing()


@pytest.mark.live
def test_a_module_that_fails_later_ends_the_run(machine: Machine) -> None:
    with machine.started_warm(*run_of(machine)) as process:
        read_until(process, "http://")
        assert machine("call", "wander", "--wait", "answer", "--port", str(machine.port)).code == 0
        read_until(process, "Wandering")  # the command has heard of the call, too
        os.kill(pid_of(machine, "rover"), signal.SIGKILL)
        rest, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "error: process 'rover' ended by SIGKILL" in rest
    assert machine.leaves_nothing()
    assert how_it_ended(machine).startswith("failed: process 'rover' ended by SIGKILL (log: ")
    (call,) = machine("calls", "--run", "rover", "--json").json
    how = "module 'rover' is gone: its process ended by SIGKILL"
    assert (call["skill"], call["outcome"], call["text"]) == ("wander", "lost", how)


@pytest.mark.live
def test_a_port_that_is_taken(machine: Machine) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", machine.port))
        other.listen()
        result = machine(*run_of(machine))
    assert result.code == 2
    assert str(machine.port) in result.err


_SQUATTER = """
import os, socket, sys, threading
os.setuid(65533)
print("tries", flush=True)
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
while True:
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", int(sys.argv[1])))
            sock.listen()
            os._exit(1)
        except OSError:
            pass
    threading.Event().wait(0.001)
"""


@pytest.mark.live
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_nobody_else_takes_the_port_of_a_bridge_that_is_restarted(machine: Machine) -> None:
    """Its clients would send them their tokens."""
    command = [sys.executable, "-c", _SQUATTER, str(machine.port)]
    with machine.started_warm(*run_of(machine, "--token", "secret")) as process:
        read_until(process, "http://")
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as squatter:
            assert squatter.stdout is not None
            assert squatter.stdout.readline() == "tries\n"
            assert machine("restart", "bridge").code == 0
            os.kill(pid_of(machine, "bridge"), signal.SIGKILL)
            wait_for(lambda: machine("status", "--ready").code == 0)
            squatter.communicate(timeout=30)
        assert squatter.returncode == 0, "it never got the port"
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=20)


@pytest.mark.live
def test_a_token_guards_the_bridge(machine: Machine) -> None:
    with machine.started_warm(*run_of(machine, "--token", "secret")) as process:
        read_until(process, "http://")
        url = f"http://127.0.0.1:{machine.port}"
        refused = machine("skills", "--url", url)
        assert refused.code == 1
        assert "--token" in refused.err
        assert machine("skills", "--url", url, DIMOS_STREAMS_TOKEN="secret").code == 0
        assert machine("skills").code == 0  # a run of one's own is known with its token
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=20)


@pytest.mark.live
def test_a_run_in_the_background_is_found_and_logs(machine: Machine) -> None:
    started = machine(*run_of(machine, "--daemon"))
    assert started.code == 0
    run_id = next(line.split()[0] for line in started.out.splitlines() if "runs in the background" in line)
    assert machine("call", "move", "--arg", "distance_m=0.1").code == 0
    with machine.started_warm("logs", "-f", run_id) as following:
        read_until(following, "completed: Moved 0.1 m fast")
        assert machine("stop", run_id).code == 0
        assert following.wait(20) == 0
    assert machine.leaves_nothing()
    assert "Moved 0.1 m" in machine("logs", run_id, "--process", "run").out


@pytest.mark.live
def test_a_run_in_the_background_tells_scripts_in_json_only_and_outlives_its_beginner(machine: Machine) -> None:
    with machine.started_warm(*run_of(machine, "--daemon", "--json")) as starting:
        first = read_until(starting, "starting")
        starting.kill()  # the run goes on without whoever has begun it
        rest = read_until(starting, '"background"')
    lines = [json.loads(line) for line in (first + rest).splitlines()]
    assert lines[-1]["kind"] == "background"
    assert machine("stop", lines[-1]["run_id"]).code == 0
    assert how_it_ended(machine) == "stopped"


def test_output_that_can_not_be_written_is_one_line(machine: Machine) -> None:
    for arguments in (["list"], ["run", "base-robot", "--virtual-time", "--duration", "1"]):
        command = [sys.executable, "-m", "dimos_streams", *arguments]
        with open("/dev/full", "w") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=50, check=False)
        assert (done.returncode, done.stderr) == (
            1,
            "error: standard output can't be written: No space left on device\n",
        )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("list >&-", 0),
        ("run base-robot --virtual-time --duration 1 <&- >&- 2>&-", 0),
        ("stop-robot --port 9 <&- >&- 2>&-", 1),
        ("frobnicate 2>&-", 2),
        ("frobnicate 2>/dev/full", 2),
    ],
)
def test_a_command_whose_words_nobody_can_see_does_and_returns_the_same(
    machine: Machine, arguments: str, code: int
) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m dimos_streams {arguments}"],
        env=machine.environment,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_descriptors_of_closed_streams_stay_taken_whatever_becomes_of_the_streams() -> None:
    """uvloop aborts the process of which a socket has one of them."""
    code = "; ".join(
        (
            "import os, sys",
            "from dimos_streams.cli.system.closed_streams import open_closed_streams",
            "open_closed_streams()",
            "sys.stdin = sys.stdout = sys.stderr = None",
            "nowhere = os.stat(os.devnull)",
            "assert all(os.path.samestat(os.fstat(fd), nowhere) and os.get_inheritable(fd) for fd in range(3))",
        )
    )
    command = f'"{sys.executable}" -c "{code}" <&- >&- 2>&-'
    assert subprocess.run(["/bin/sh", "-c", command], timeout=50, check=False).returncode == 0


@pytest.mark.live
def test_what_a_run_writes_is_its_users_alone(machine: Machine, tmp_path: Path) -> None:
    log = tmp_path / "walk.lcmlog"
    said = ["--say", "move 0.2 m", "--exit-when-done", "--record", str(log)]
    for mode in ([], ["--in-process"]):
        log.unlink(missing_ok=True)
        assert machine(*run_of(machine, *said, *mode)).code == 0
        written = [log, *machine.state.glob("runs/**/*")]
        assert len(written) > 5
        assert [path for path in written if path.stat().st_mode & 0o077] == []
