"""The checks of ``doctor`` about a bus of LCM."""

from __future__ import annotations

from pathlib import Path

from dimos_streams.bus import create_bus
from dimos_streams.bus.lcm.bus import LcmBus
from dimos_streams.bus.lcm.multicast_route import route_commands, route_interface
from dimos_streams.bus.lcm.url import UdpmUrl
from dimos_streams.cli.system.bus_echo import LARGEST, MANY, echo
from dimos_streams.cli.system.finding import Finding
from dimos_streams.errors import DimosStreamsError

_WANTED_BUFFER = 4 * 1024 * 1024


async def check_lcm(url: UdpmUrl) -> list[Finding]:
    """Check whether there is a route, messages come back, and bursts have room."""
    problem = url.route_problem()
    if problem is not None:
        text = f"no route to {url.group}: {problem}; as root:"
        return [Finding("multicast", "error", text, route_commands(url.ttl))]
    return [_route(url), *await _self_test(url), _receive_buffer()]


def _route(url: UdpmUrl) -> Finding:
    """Check whether the route goes as far as the URL says."""
    if why := url.stays_here():
        return Finding("multicast", "error", f"{why}; as root:", route_commands(url.ttl, replaces=True)[:-1])
    interface = route_interface(url.group)
    on = f" on {interface!r}" if interface is not None else ""
    reach = "other machines of that network hear us" if url.ttl > 0 else "with ttl=0 nothing leaves this machine"
    return Finding("multicast", "ok", f"there is a route to {url.group}{on}; {reach}")


async def _self_test(url: UdpmUrl) -> list[Finding]:
    """Send messages to ourselves and receive them, and report the packet guard."""
    bus = create_bus(str(url))
    assert isinstance(bus, LcmBus)
    try:
        await bus.open()
        delay_s, received = await echo(bus, bus)
    except DimosStreamsError as error:
        return [Finding("bus", "error", str(error))]
    finally:
        await bus.close()
    dropped = "malformed datagrams and those of other machines" if url.ttl == 0 else "malformed datagrams"
    guard = (
        Finding("packet guard", "ok", f"{dropped} are dropped")
        if bus.guarded
        else Finding("packet guard", "warning", "not available here: a malformed datagram can end a process")
    )
    if not received:
        text = f"nothing that is sent to {url} comes back; a firewall may drop it"
        return [Finding("bus", "error", text, ("iptables -S | grep -i drop",)), guard]
    lost = MANY - received
    size, delay_ms = f"{LARGEST // 1000} kB", f"{delay_s * 1000:.1f} ms"
    text = f"{url}: {received} of {MANY} messages of {size} came back, the first after {delay_ms}"
    return [Finding("bus", "warning" if lost else "ok", text), guard]


def _receive_buffer() -> Finding:
    path = Path("/proc/sys/net/core/rmem_max")
    try:
        size = int(path.read_bytes())
    except OSError:
        return Finding("receive buffer", "warning", f"{path} can't be read, so its size is unknown")
    if size >= _WANTED_BUFFER:
        return Finding("receive buffer", "ok", f"up to {size} bytes")
    commands = (f"sysctl -w net.core.rmem_max={_WANTED_BUFFER}", f"sysctl -w net.core.rmem_default={_WANTED_BUFFER}")
    text = f"only {size} bytes: bursts and messages over 100 kB get lost; as root:"
    return Finding("receive buffer", "warning", text, commands[:1])
