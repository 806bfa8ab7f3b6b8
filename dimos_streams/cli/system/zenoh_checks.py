"""The checks of ``doctor`` about a bus of Zenoh."""

from __future__ import annotations

import asyncio
import importlib.util
import os
from dataclasses import replace

from dimos_streams.bus import create_bus
from dimos_streams.bus.zenoh.scouting import peers_found
from dimos_streams.bus.zenoh.session import WHO_LETS_NOBODY_IN
from dimos_streams.bus.zenoh.url import ZenohUrl
from dimos_streams.cli.system.bus_echo import LARGEST, MANY, echo
from dimos_streams.cli.system.finding import Finding, installing
from dimos_streams.common.secrets import redacted
from dimos_streams.errors import DimosStreamsError

_ANSWERS_WITHIN_S = 2.0


async def check_zenoh(url: ZenohUrl) -> list[Finding]:
    """Check whether the package is there, all endpoints answer, and two peers find each other."""
    if importlib.util.find_spec("zenoh") is None:
        missing = "buses of `zenoh://` need a package that is not installed:"
        return [Finding("bus", "error", missing, (installing("zenoh"),))]
    endpoints = await asyncio.gather(*(_endpoint(url, address) for address in url.endpoints))
    if url.scouting is None and not url.endpoints:
        text = f"it looks for nobody (scout=off) and waits for others at {', '.join(url.listening)}"
        return [Finding("bus", "warning", text)]
    return [*endpoints, *await _peers(url), await _bus(url)]


async def _endpoint(url: ZenohUrl, address: str) -> Finding:
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(_ANSWERS_WITHIN_S):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except OSError as error:  # a timeout is one
        why = os.strerror(error.errno) if error.errno else "it does not answer"
        text = f"{address} can't be reached: {why}; start what listens there, or see whether a firewall drops it"
        return Finding("endpoint", "error", text)
    writer.close()
    if await _lets_in(url, address):
        return Finding("endpoint", "ok", f"{address} takes connections")
    return Finding("endpoint", "error", f"{address} takes connections, but no link of this bus: {WHO_LETS_NOBODY_IN}")


async def _peers(url: ZenohUrl) -> list[Finding]:
    """Check whether those who are found take links, one of each host."""
    if url.scouting is None or url.mode == "client":
        return []
    addresses = await peers_found(url)
    open_to_us = await asyncio.gather(*(_lets_in(url, address.partition("/")[2]) for address in addresses))
    shut = [address for address, is_open in zip(addresses, open_to_us, strict=True) if not is_open]
    return [
        Finding("peer", "warning", f"{address} is found, but takes no link of this bus: {WHO_LETS_NOBODY_IN}")
        for address in shut
    ]


async def _lets_in(url: ZenohUrl, address: str) -> bool:
    """Have a session link to whoever is reached at an address: it is let in by its user and certificate."""
    bus = create_bus(str(replace(url, endpoints=(address,), listen=(), scout="off", mode="client")))
    try:
        await bus.open()
    except DimosStreamsError:
        return False
    finally:
        await bus.close()
    return True


async def _bus(url: ZenohUrl) -> Finding:
    """Have two sessions of this process find each other, as those of two modules would."""
    # A port that a URL names can be listened at by one of them only.
    probe = str(replace(url, listen=(), mode="client" if url.mode == "client" else "peer"))
    shown = redacted(str(url))
    receiver, sender = create_bus(probe), create_bus(probe)
    try:
        for bus in (receiver, sender):
            await bus.open()
        delay_s, received = await echo(sender, receiver)
    except DimosStreamsError as error:
        return Finding("bus", "error", str(error))
    finally:
        for bus in (sender, receiver):
            await bus.close()
    if not received:
        return _not_found(url, shown)
    text = f"{shown}: {received} of {MANY} messages of {LARGEST // 1000} kB arrived, the first after"
    return Finding("bus", "ok" if received == MANY else "warning", f"{text} {delay_s * 1000:.1f} ms")


def _not_found(url: ZenohUrl, shown: str) -> Finding:
    if url.scouting is None or url.mode == "client":
        at = ", ".join(url.endpoints)
        return Finding("bus", "error", f"{shown}: two sessions that are connected to {at} do not hear each other")
    text = f"{shown}: peers do not find each other at {url.scouting} on {url.interface!r}; as root:"
    commands = (f"ip link set {url.interface} multicast on", f"ip route add 224.0.0.0/4 dev {url.interface}")
    return Finding("bus", "error", text, commands)
