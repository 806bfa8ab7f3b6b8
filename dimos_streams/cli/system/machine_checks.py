"""The checks of ``doctor``. They only look; commands that would mend things are shown, never run."""

from __future__ import annotations

import importlib.util
import platform
import socket
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, assert_never

from dimos_streams.bus.lcm.url import DEFAULT_URL, UdpmUrl
from dimos_streams.bus.url import transport_of
from dimos_streams.bus.zenoh.url import ZenohUrl
from dimos_streams.cli.system.clock_offset_text import clock_offset_text
from dimos_streams.cli.system.finding import Finding, installing
from dimos_streams.cli.system.lcm_checks import check_lcm
from dimos_streams.cli.system.zenoh_checks import check_zenoh
from dimos_streams.errors import UserError

if TYPE_CHECKING:
    from dimos_streams.runtime.registry import RunRecord

_CLOCKS_AGREE_US = 100_000
EXTRAS = (
    ("mujoco", "sim", "the simulator"),
    ("simplejpeg", "sim", "JPEG images"),
    ("cv2", "vision", "the HOG detector of people"),
    ("openai", "openai", "LLMs over OpenAI-compatible servers"),
    ("zenoh", "zenoh", "buses of `zenoh://`"),
    ("cyclonedds", "ros2", "robots that run ROS 2"),
    ("foxglove", "foxglove", "viewers of Foxglove, live"),
    ("mcap", "mcap", "recordings as MCAP files"),
    ("onnxruntime", "onnx", "detectors as ONNX files"),
    ("matplotlib", "plot", "`replay --plot`: pictures of the differences"),
    ("watchfiles", "reload", "`run --reload`"),
    ("psycopg", "hub", "fleet hubs on PostgreSQL"),
)
"""The package that shows whether an extra is installed, the extra, and its purpose."""


def known_runs() -> list[RunRecord]:
    """Return the living runs of this user; none where they can't be looked for, which is a finding by itself."""
    from dimos_streams.runtime.registry import runs

    try:
        return runs()
    except UserError:
        return []


async def examine(bus: str, port: int, living: Sequence[RunRecord]) -> list[Finding]:
    """Return the findings about this machine, with a bus and a port for the bridge, beside the runs that live on it.
    Raises ``UserError`` for a bad URL."""
    return [_python(), _state(), *await _bus(bus), _port(port, living), *_clocks(living), *_extras()]


def _python() -> Finding:
    text = f"{platform.python_version()} ({sys.executable})"
    return Finding("python", "ok" if sys.version_info >= (3, 11) else "error", text)


def _state() -> Finding:
    from dimos_streams.runtime.run_directories import all_runs, state_dir, why_no_run

    if why := why_no_run():
        return Finding("state directory", "error", why)
    try:
        all_runs()
    except UserError as error:
        return Finding("state directory", "error", str(error))
    return Finding("state directory", "ok", f"runs can keep their files in {state_dir()}")


async def _bus(text: str) -> list[Finding]:
    match transport_of(text):
        case "memq":
            raise UserError(f"{text!r} is no bus between processes; give for example {DEFAULT_URL!r} or 'zenoh://'")
        case "udpm":
            return await check_lcm(UdpmUrl.parse(text))
        case "zenoh":
            return await check_zenoh(ZenohUrl.parse(text))
        case unknown:
            assert_never(unknown)


def _port(port: int, living: Sequence[RunRecord]) -> Finding:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return _taken(port, living)
    return Finding("bridge port", "ok", f"{port} is free" if port else "any that is free is taken (0)")


def _taken(port: int, living: Sequence[RunRecord]) -> Finding:
    for run in living:
        if run.port == port:
            return Finding("bridge port", "ok", f"{port} serves the run {run.run_id}")
    text = f"{port} is taken by another program; run with --port, or see who it is:"
    return Finding("bridge port", "warning", text, (f"ss -ltnp 'sport = :{port}'",))


def _clocks(living: Sequence[RunRecord]) -> Iterator[Finding]:
    """Yield the differences of the clocks of machines on which parts of living runs are."""
    for run in living:
        for machine, offset in run.clocks.items():
            shown = clock_offset_text(offset.ahead_us, offset.within_us)
            text = f"that of {machine!r} is {shown} (measured by {run.run_id})"
            if abs(offset.ahead_us) <= _CLOCKS_AGREE_US + offset.within_us:
                yield Finding("clock", "ok", text)
            else:
                text += "; runs go by what was measured, but times in logs and recordings of the two differ:"
                yield Finding("clock", "warning", text, ("timedatectl set-ntp true",))


def _extras() -> Iterator[Finding]:
    for package, extra, purpose in EXTRAS:
        if importlib.util.find_spec(package) is not None:
            yield Finding(package, "ok", f"installed, for {purpose}")
        else:
            yield Finding(package, "warning", f"not installed; needed for {purpose}:", (installing(extra),))
