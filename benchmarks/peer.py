"""The same workload through a ``dimos`` installation, which has an interpreter of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.result import Arrivals, Result
from dimos_streams.errors import UserError
from tests.ports import free_bus, free_port

_SCRIPT = Path(__file__).with_name("peer_dimos.py")
_TIMEOUT_S = 180.0
_BIG_BUFFER = "recv_buf_size=4194304"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Updates of one call. A rate of 0 means without pauses."""

    name: str
    count: int
    rate_hz: float = 0.0


@dataclass(frozen=True, slots=True)
class Peer:
    """A ``dimos`` installation, given by its interpreter."""

    python: Path
    version: str

    @classmethod
    def at(cls, python: Path) -> Peer:
        """Raises ``UserError`` if that is no interpreter that has dimos."""
        question = "from importlib.metadata import version; print(version('dimos'))"
        try:
            answer = subprocess.run([python, "-c", question], capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            why = error.strerror if isinstance(error, OSError) else "no answer within 60 s"
            raise UserError(f"--peer {str(python)!r} does not run ({why}); give a venv's bin/python") from error
        if answer.returncode != 0:
            raise UserError(f"--peer {str(python)!r} has no dimos ({_last_line(answer.stderr)})")
        return cls(python, answer.stdout.strip())

    async def measure(self, workloads: Sequence[Workload]) -> list[Result]:
        """Each workload twice: read from the event stream, and from the bus as dimos' own agent does it.

        What comes without pauses is sent once more with sockets that buffer as much as ours, where losses happen.
        """
        found = await self._run(workloads, free_bus())
        bursts = [load for load in workloads if load.rate_hz == 0]
        found += await self._run(bursts, f"{free_bus()}&{_BIG_BUFFER}", suffix=", 4 MB")
        return found

    async def _run(self, workloads: Sequence[Workload], bus_url: str, suffix: str = "") -> list[Result]:
        request = {"port": free_port(), "workloads": [asdict(load) for load in workloads]}
        with tempfile.TemporaryDirectory() as directory:
            process = await asyncio.create_subprocess_exec(
                self.python,
                _SCRIPT,
                json.dumps(request),
                env=_environment(bus_url, directory),
                cwd=directory,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
            try:
                async with asyncio.timeout(_TIMEOUT_S):
                    output, errors = await process.communicate()
            except TimeoutError:
                raise UserError(f"dimos {self.version} did not end within {_TIMEOUT_S:g} s") from None
            finally:
                _end_group(process.pid)
                await process.wait()
        if process.returncode != 0:
            raise UserError(f"dimos {self.version} failed: {_last_line(errors.decode(errors='replace'))}")
        return [_result(fields, suffix) for fields in json.loads(output)]


def _environment(bus_url: str, directory: str) -> dict[str, str]:
    """A bus and files of its own; and dimos is not to change the machine's routes and buffers, as it does unasked."""
    folders = {f"XDG_{kind}_HOME": directory for kind in ("STATE", "CONFIG", "CACHE")}
    hands_off = {"PYTEST_VERSION": "benchmark"}
    # Modules beside the script must not hide those of dimos.
    return {
        **os.environ,
        **folders,
        **hands_off,
        "DIMOS_TRANSPORT": "lcm",
        "LCM_DEFAULT_URL": bus_url,
        "PYTHONSAFEPATH": "1",
    }


def _result(fields: dict[str, Any], suffix: str) -> Result:
    arrivals = Arrivals(
        numbers=fields["numbers"],
        latencies_us=fields["latencies_us"],
        first_us=fields["first_us"],
        last_us=fields["last_us"],
    )
    name = f"dimos {fields['path']}: {fields['name']}{suffix}"
    return Result.of(name, fields["sent"], arrivals, peer_of=fields["name"])


def _end_group(pid: int) -> None:
    """Its workers would outlive an interpreter that was interrupted."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _last_line(text: str) -> str:
    """What is said last, which a group of exceptions draws a frame around."""
    lines = [line.strip(" |+-") for line in text.splitlines()]
    return next((line for line in reversed(lines) if line), "it says nothing")
