"""The server that forks workers, as a fork of the command: what they share, and what they import themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.live, pytest.mark.slow]

REPORT = """
import json, os, sys

def report(path, mine):
    __import__(mine)
    files = [os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
    known = ["dimos_streams.agent.module", "dimos_streams.skills.drive", "html.parser", "never.imported"]
    with open(path, "w") as out:
        json.dump({
            "parent": os.getppid(),
            "imported": [name for name in known if name in sys.modules],
            "mine": sys.modules[mine].VALUE,
            "files": files,
        }, out)
"""
COMMAND = """
import multiprocessing, os, pathlib, sys
sys.path.insert(0, folder := sys.argv[1])
import dimos_streams.agent.module, dimos_streams.skills.drive
known = frozenset(sys.modules)
import mine, reporter
from dimos_streams.runtime.processes import fork_server

def ask(number):
    path = f"{folder}/{number}.json"
    worker = multiprocessing.get_context("forkserver").Process(target=reporter.report, args=(path, "mine"))
    worker.start()
    worker.join()
    assert worker.exitcode == 0

held = open(mine.__file__)
fork_server.fork_server_from_here(["html.parser", "never.imported"], ["reporter"], known)
with open(mine.__file__, "w") as source:
    source.write("VALUE = 'second, and longer'")
fork_server.start_forkserver()
fork_server.renew_stale_server()
ask(1)
fork_server._FOLDER = pathlib.Path(folder)  # as if it had the library, of which the server has imported a part
fork_server.renew_stale_server()
fork_server.start_forkserver()
ask(2)
when = os.stat(mine.__file__)
with open(mine.__file__, "w") as source:
    source.write("VALUE = 'third, and as long'")
os.utime(mine.__file__, ns=(when.st_atime_ns, when.st_mtime_ns))
assert os.stat(mine.__file__).st_size == when.st_size
fork_server.renew_stale_server()
fork_server.start_forkserver()
ask(3)
fork_server.renew_stale_server()
fork_server.start_forkserver()
ask(4)
print(os.getpid())
"""


def test_workers_share_the_library_import_the_rest_and_see_edits_of_both(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("VALUE = 'first'")
    (tmp_path / "reporter.py").write_text(REPORT)
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": root}
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    of_fork, of_fresh, of_same_time, of_none = (read(tmp_path / f"{number}.json") for number in (1, 2, 3, 4))
    assert of_fork["imported"] == ["dimos_streams.agent.module", "html.parser"]
    assert of_fresh["imported"] == []
    assert of_fork["parent"] != of_fresh["parent"]
    assert of_fork["mine"] == of_fresh["mine"] == "second, and longer"
    assert of_same_time["mine"] == of_none["mine"] == "third, and as long"
    assert of_fresh["parent"] != of_same_time["parent"] == of_none["parent"]
    assert str(tmp_path / "mine.py") not in of_fork["files"]


def read(path: Path) -> Any:
    return json.loads(path.read_text())
