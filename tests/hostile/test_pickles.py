"""Nothing is ever unpickled: no code that could, and at each door pickles that would leave a trace.

The Zenoh bus and robots of dimos get theirs in ``tests/live/test_dimos_robot.py``.
"""

from __future__ import annotations

import ast
import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
from websockets.sync.client import connect

from dimos_streams.blueprint.classes import module_class
from dimos_streams.blueprint.wiring import ports_of
from dimos_streams.bridge.calls.stops import stop_state
from dimos_streams.cli.entry import run_command
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.recording.reader import LogReader
from dimos_streams.testing.mission import MissionRun
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.protocol.channels import CALLS, CANCELS, EVENTS, REQUESTS, STATUS
from tests.bridge.serving import served
from tests.dimos_skills.stand_in import stand_in
from tests.dimos_skills.test_dimos_skills import taken_in
from tests.helpers import until
from tests.hostile.pickles import Trap
from tests.viewer.open_recordings import served_in_a_thread

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path for folder in ("dimos_streams", "skills", "blueprints", "examples") for path in (ROOT / folder).rglob("*.py")
)
_LOGGING = [
    f"dimos_streams.{name}"
    for name in ("tool_stream.hosting.host", "tool_stream.liveness.heartbeat_intake", "streams.input")
]
_MODULES = {
    "_pickle", "cPickle", "cloudpickle", "copyreg", "dill", "joblib", "jsonpickle", "marshal", "multiprocessing",
    "pickle", "shelve", "torch", "xmlrpc", "yaml",
}  # fmt: skip
"""They unpickle, or do what comes to the same."""
_NAMES = {
    "eval", "exec", "__import__", "ProcessPoolExecutor", "SocketHandler", "DatagramHandler", "Unpickler",
    "read_pickle", "unsafe_load", "full_load", "allow_pickle", "weights_only",
}  # fmt: skip
_WORD = re.compile(rf"\b(?:{'|'.join([*_MODULES, *_NAMES])})\b|\b(?:np|numpy)\.load|\brecv\(\)|\bYAML\(")
"""What is worth a closer look."""
ALLOWED = {
    ("dimos_streams/runtime/processes/fork_server.py", "multiprocessing"): "begins processes of the run's own",
    ("dimos_streams/runtime/processes/orphaned.py", "multiprocessing"): "waits for the end of a worker's parent",
    ("dimos_streams/runtime/processes/process.py", "multiprocessing"): "its workers, which get a plan from it; what"
    " they report is JSON",
    ("dimos_streams/runtime/processes/reports.py", "multiprocessing"): "a worker's reports, lines of JSON",
    ("dimos_streams/runtime/processes/worker.py", "multiprocessing"): "reports to its parent, in JSON",
    ("dimos_streams/bus/zenoh/reader.py", "recv()"): "of a subscriber of Zenoh: it gives bytes",
}
"""Who may use what, and why that reads nothing from outside."""


def unpickling(tree: ast.AST) -> Iterator[str]:
    """The modules and names in some code that read pickles, or run what they are given."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from (name.name.partition(".")[0] for name in names if name.name.partition(".")[0] in _MODULES)
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in _MODULES:
                yield module.partition(".")[0]
            case ast.Name(id) | ast.Attribute(attr=id) | ast.keyword(arg=str(id)) if id in _NAMES:
                yield id
            case ast.Call(ast.Attribute(ast.Name("np" | "numpy"), "load")):
                yield "numpy.load"
            case ast.Call(ast.Attribute(attr="recv"), [], []):
                yield "recv()"  # of a multiprocessing connection: it unpickles
            case ast.Call(ast.Name("YAML"), keywords=words):
                if not any(ast.unparse(word) == "typ='safe'" for word in words):
                    yield "YAML without typ='safe'"


@pytest.mark.slow
@pytest.mark.feature("G3", "F6")
def test_no_code_could_unpickle() -> None:
    assert len(SOURCES) > 300
    found = {
        (path.relative_to(ROOT).as_posix(), what)
        for path in SOURCES
        if _WORD.search(text := path.read_text(encoding="utf-8"))
        for what in unpickling(ast.parse(text))
    }
    assert found == set(ALLOWED)


@pytest.mark.parametrize(
    "code",
    [
        "import pickle", "from pickle import loads", "import multiprocessing.connection", "numpy.load(p)",
        "np.load(p, allow_pickle=True)", "YAML()", "YAML(typ='unsafe')", "connection.recv()", "exec(text)",
        "logging.handlers.SocketHandler('', 1)", "torch.load(p, weights_only=False)", "builtins.eval(x)",
    ],
)  # fmt: skip
def test_the_search_finds(code: str) -> None:
    assert _WORD.search(code)
    assert list(unpickling(ast.parse(code)))


@pytest.fixture
def trap(tmp_path: Path) -> Iterator[Trap]:
    """One that must not be sprung."""
    made = Trap(tmp_path / "trace")
    yield made
    assert not made.sprung, "something was unpickled"


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert all(len(line) < 1000 and "\n" not in line for line in found), found
    return found


def channels(run: MissionRun) -> list[str]:
    """All that the run listens to, and what dimos sends pickles on."""
    specs = run.blueprint.modules.values()
    ports = [port for spec in specs for port in ports_of(spec, module_class(spec)) if port.topic]
    service = [CALLS, CANCELS, EVENTS, REQUESTS, STATUS, "/tool_streams", "/human_input", "/rpc/Robot/start/req"]
    return list(dict.fromkeys([*(port.channel for port in ports), *service]))


def look_at(log: Path) -> None:
    """A recording can be looked at, whatever is in it."""
    with served_in_a_thread(log) as url:
        for path in ("calls", "events", "skills"):
            assert requests.get(f"{url}/{path}", timeout=20).status_code == 200


@pytest.mark.slow
@pytest.mark.feature("G3", "F6")
@pytest.mark.virtual_time
async def test_on_each_channel_of_a_bus_and_in_recordings(
    trap: Trap,
    blueprint_run: Callable[..., MissionRun],
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for module in _LOGGING:  # what other tests have logged lately must not count
        monkeypatch.setattr(f"{module}._log", LimitedLog(logging.getLogger(module)))
    small = {"robot.camera_width": 64, "robot.camera_height": 48}
    async with blueprint_run("follow-person", settings=small) as run:
        listened = channels(run)
        assert len(listened) > 15
        for payload in reversed(trap.payloads):
            for channel in listened:
                run.bus.publish(channel, payload)
            await run.sleep(0.05)
        assert (await (await run.call("turn", angle_deg=5)).closed()).outcome is Outcome.COMPLETED
        log = run.recording
    logged = warnings(caplog)
    for what in (
        "skipped a call",
        "skipped a cancel",
        "skipped a heartbeat",
        "bad geometry_msgs.Twist on '/cmd_vel#",
    ):
        (line,) = (line for line in logged if what in line)
        assert line.endswith("a Python pickle, which is never read")

    caplog.clear()
    with LogReader(log) as reader:
        assert sum(event.data == trap.newest for event in reader.events()) > 10
    look_at(log)
    for command in (["info", str(log), "--json"], ["report", str(log), "-o", str(tmp_path / "report.html")]):
        code = run_command(["recording", *command])
        shown = capsys.readouterr()
        assert (code, "Traceback" in shown.out + shown.err) in ((0, False), (2, False)), shown
    for payload in (trap.newest, trap.payloads[0]):
        log.write_bytes(payload)
        assert run_command(["recording", "info", str(log)]) in (0, 1, 2)
        assert "Traceback" not in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.feature("G3", "F6")
def test_over_http_and_on_websockets(trap: Trap) -> None:
    with served() as bridge:
        for kind in ("application/json", "application/octet-stream", "application/x-python-pickle"):
            for path in ("/calls", "/calls/x/cancel", "/calls/cancel", "/robots/stop", "/settings", "/mcp"):
                for payload in (trap.newest, trap.payloads[0]):
                    refused = bridge.post(path, data=payload, headers={"Content-Type": kind})
                    assert 400 <= refused.status_code < 500, (path, refused.text)
                    assert len(refused.text) < 2000
        with connect(f"ws://127.0.0.1:{bridge.port}/monitor") as socket:
            socket.send(trap.newest)
            while "error" not in (answer := json.loads(socket.recv(timeout=30)))["type"]:
                pass
            assert answer
        assert bridge.call("at_once", value=3)["outcome"] == "completed"


@pytest.mark.feature("G3", "F6")
def test_from_a_server_of_dimos(trap: Trap, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        with stand_in() as server:
            async with taken_in(server) as harness:
                server.answers["wave"] = lambda arguments, token: trap.newest
                close = await (await harness.call("dimos_wave")).closed()
                assert (close.outcome, "answers with no JSON-RPC" in close.text) == (Outcome.FAILED, True)
                for payload in trap.payloads:
                    server.send(payload)
                server.list_body = trap.newest
                await until(lambda: "answers with no JSON-RPC" in harness.module.health)
                server.list_body = None
                await until(lambda: harness.module.health == "ok")
            assert any("says what is no notice" in line for line in warnings(caplog))

    asyncio.run(scenario())


@pytest.mark.feature("G3", "F6")
def test_in_a_file_of_the_run(trap: Trap, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / f"journal{stop_state.SUFFIX}"
    path.write_bytes(trap.newest)
    assert stop_state.load(path).covering("") is not None, "what can't be read stops every robot"
    assert len(warnings(caplog)) == 1
