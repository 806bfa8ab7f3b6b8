"""The simulator and all around it need nothing of a machine but Python: no GPU, display, system package, download."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

STANDARD = "import bz2, ctypes, hashlib, lzma, sqlite3, ssl, uuid, zlib"
EVERYWHERE = {"libc", "libdl", "libgcc_s", "libm", "libpthread", "librt", "libstdc++", "libutil"}
"""The libraries of the packages without which a Debian system can't be."""
MISSION = """
import sys
sys.modules["lcm"] = None  # its library needs GLib, which is no part of bare machines

def refuse(event, arguments):
    if event in ("socket.getaddrinfo", "socket.connect", "urllib.Request", "subprocess.Popen"):
        raise AssertionError(f"{event} {arguments}")

sys.addaudithook(refuse)
from dimos_streams.cli.entry import run_command
small = ["--set", "robot.camera_width=160", "--set", "robot.camera_height=120"]
words = ["--say", "follow the person in red", "--duration", "2", "--seed", "7"]
code = run_command(["run", "follow-person", "--virtual-time", "--record", sys.argv[1], *words, *small])
assert code == 0, code
"""
TELL = """
import json
libraries = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
print(json.dumps(sorted(libraries)))
"""


def libraries_of(code: str, *arguments: str) -> set[Path]:
    """The libraries that are loaded in the end, in an environment that says nothing of displays or drivers."""
    command = [sys.executable, "-c", code + TELL, *arguments]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, env={"PYTHONPATH": str(root)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {Path(name) for name in json.loads(done.stdout.splitlines()[-1])}


@pytest.mark.feature("F4")
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="reads /proc")
@pytest.mark.slow
def test_a_mission_loads_no_library_of_the_system(tmp_path: Path) -> None:
    log = tmp_path / "a.lcmlog"
    loaded = libraries_of(MISSION, str(log)) - libraries_of(STANDARD)
    assert any("mujoco" in library.name for library in loaded)
    assert b"/color_image#sensor_msgs.Image" in log.read_bytes(), "pictures were rendered"
    of_python = {Path(path) for path in sysconfig.get_paths().values()}
    foreign = {library.name.partition(".so")[0] for library in loaded if not of_python & set(library.parents)}
    assert foreign <= EVERYWHERE
