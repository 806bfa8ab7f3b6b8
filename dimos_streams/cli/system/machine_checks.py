"""The checks of ``doctor``. Each check only looks; commands that would mend things are shown, never run."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import platform
import socket
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from dimos_streams import clock
from dimos_streams.bus import create_bus
from dimos_streams.bus.lcm_bus import LcmBus
from dimos_streams.bus.url import UdpmUrl, transport_of
from dimos_streams.errors import DimosStreamsError, UserError

_WANTED_BUFFER = 4 * 1024 * 1024
_LARGEST_MESSAGE = 60_000
_MANY = 50
_ECHO_BOUND_S = 2.0

_PARTS = (
    ("mujoco", "sim", "the simulator"),
    ("simplejpeg", "sim", "JPEG images"),
    ("cv2", "vision", "the HOG detector of people"),
    ("openai", "openai", "LLMs over OpenAI-compatible servers"),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding of one check."""

    name: str
    severity: Literal["ok", "warning", "error"]
    text: str
    commands: tuple[str, ...] = ()
    """Would mend it."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


async def examine(bus: str, port: int) -> list[Finding]:
    """All findings about this machine, with a bus and a port for the bridge. Raises ``UserError`` for a bad URL."""
    return [_python(), *await _bus(bus), _port(port), *_optional_parts()]


def _python() -> Finding:
    text = f"{platform.python_version()} ({sys.executable})"
    return Finding("python", "ok" if sys.version_info >= (3, 11) else "error", text)


async def _bus(text: str) -> list[Finding]:
    if transport_of(text) != "udpm":
        raise UserError(
            f"{text!r} is no bus between processes; give an LCM URL such as 'udpm://239.255.76.67:7667?ttl=0'"
        )
    url = UdpmUrl.parse(text)
    problem = url.route_problem()
    if problem is not None:
        commands = ("ip route add 224.0.0.0/4 dev lo", "ip link set lo multicast on")
        return [Finding("multicast", "error", f"no route to {url.group}: {problem}; as root:", commands)]
    route = Finding("multicast", "ok", f"there is a route to {url.group}")
    return [route, *await _self_test(url), _receive_buffer()]


async def _self_test(url: UdpmUrl) -> list[Finding]:
    """Send messages of both kinds, small and as large as any may be, and receive them."""
    bus = create_bus(str(url))
    assert isinstance(bus, LcmBus)
    try:
        await bus.open()
        delay_s, received = await _echo(bus)
    except DimosStreamsError as error:
        return [Finding("bus", "error", str(error))]
    finally:
        await bus.close()
    guard = (
        Finding("packet guard", "ok", "malformed datagrams are dropped")
        if bus.guarded
        else Finding("packet guard", "warning", "not available here: a malformed datagram can end a process")
    )
    if not received:
        text = f"nothing that is sent to {url} comes back; a firewall may drop it"
        return [Finding("bus", "error", text, ("iptables -S | grep -i drop",)), guard]
    lost = _MANY - received
    size, delay_ms = f"{_LARGEST_MESSAGE // 1000} kB", f"{delay_s * 1000:.1f} ms"
    text = f"{url}: {received} of {_MANY} messages of {size} came back, the first after {delay_ms}"
    return [Finding("bus", "warning" if lost else "ok", text), guard]


async def _echo(bus: LcmBus) -> tuple[float, int]:
    """The delay of the first message and how many of all came back."""
    channel = f"/doctor/{os.getpid()}#std_msgs.String"
    received = 0
    first = float("nan")
    changed = asyncio.Event()

    def on_message(channel: str, data: bytes) -> None:
        nonlocal received, first
        received += 1
        first = clock.monotonic() - began if received == 1 else first
        changed.set()

    bus.subscribe(channel, on_message)
    began = clock.monotonic()
    try:
        async with asyncio.timeout(_ECHO_BOUND_S):
            for number in range(1, _MANY + 1):
                bus.publish(channel, bytes(_LARGEST_MESSAGE))
                while received < number:
                    changed.clear()
                    await changed.wait()
    except TimeoutError:
        pass  # what is missing is the finding
    return first, received


def _receive_buffer() -> Finding:
    path = Path("/proc/sys/net/core/rmem_max")
    try:
        size = int(path.read_text())
    except OSError:
        return Finding("receive buffer", "warning", f"{path} can't be read, so its size is unknown")
    if size >= _WANTED_BUFFER:
        return Finding("receive buffer", "ok", f"up to {size} bytes")
    commands = (f"sysctl -w net.core.rmem_max={_WANTED_BUFFER}", f"sysctl -w net.core.rmem_default={_WANTED_BUFFER}")
    text = f"only {size} bytes: bursts and messages over 100 kB get lost; as root:"
    return Finding("receive buffer", "warning", text, commands[:1])


def _port(port: int) -> Finding:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return _taken(port)
    return Finding("bridge port", "ok", f"{port} is free")


def _taken(port: int) -> Finding:
    from dimos_streams.runtime.registry import runs

    for run in runs():
        if run.port == port:
            return Finding("bridge port", "ok", f"{port} serves the run {run.run_id}")
    text = f"{port} is taken by another program; run with --port, or see who it is:"
    return Finding("bridge port", "warning", text, (f"ss -ltnp 'sport = :{port}'",))


def _optional_parts() -> Iterator[Finding]:
    for package, extra, purpose in _PARTS:
        if importlib.util.find_spec(package) is not None:
            yield Finding(package, "ok", f"installed, for {purpose}")
        else:
            command = f"{sys.executable} -m pip install 'dimos-streams[{extra}]'"
            yield Finding(package, "warning", f"not installed; needed for {purpose}:", (command,))
