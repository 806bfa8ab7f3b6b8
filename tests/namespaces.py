"""Two machines on one: network namespaces with a switch between them whose cables can be cut.

A namespace has no name. It lasts for as long as a process or a descriptor is in it, so that nothing is left behind,
however the tests end.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Literal

import pytest

from tests.helpers import wait_for

Cut = Literal["unplugged", "silent"]
CUTS: Mapping[Cut, tuple[str, str]] = {"unplugged": ("down", "up"), "silent": ("nomaster", "master switch")}
"""How a port of the switch is cut and healed. Both ends are told that they are ``unplugged``: they have no carrier.
Of a ``silent`` cut nobody is told."""
INTERFACE = "eth0"
_NEW_NETWORK = 0x40000000
_RUNS_WITHIN_S = 10.0
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Machine:
    """One of the two: a network namespace with an address on ``INTERFACE``."""

    address: str
    _descriptor: int

    @contextmanager
    def entered(self) -> Iterator[None]:
        """What this thread begins meanwhile is in the namespace and stays there: sockets, processes, threads."""
        before = _current()
        try:
            _enter(self._descriptor)
            yield
        finally:
            _enter(before)
            os.close(before)


@dataclass(frozen=True, slots=True)
class Link:
    """Two machines that reach each other, and nobody else."""

    here: Machine
    there: Machine
    _switch: Machine

    @contextmanager
    def cut(self, how: Cut) -> Iterator[None]:
        """Nothing gets through meanwhile."""
        cut, heal = CUTS[how]
        self._set_ports(cut)
        try:
            yield
        finally:
            self._set_ports(heal)

    def _set_ports(self, setting: str) -> None:
        with self._switch.entered():
            for port in ("port1", "port2"):
                _ip(f"link set {port} {setting}")


@contextmanager
def linked() -> Iterator[Link]:
    """Two machines and the link between them. Skips the test where namespaces can't be made."""
    if shutil.which("ip") is None:
        pytest.skip("no iproute2: apt-get install iproute2")
    with ExitStack() as stack:
        try:
            switch, here, there = (_machine(stack, address) for address in ("127.0.0.1", "10.77.0.1", "10.77.0.2"))
            _connect(switch, here, there)
        except OSError as error:
            pytest.skip(f"no network namespaces here, which need root: {error}")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network can be made here: {' '.join(error.cmd)}: {error.stderr.strip()}")
        yield Link(here, there, switch)


def _machine(stack: ExitStack, address: str) -> Machine:
    before = _current()
    stack.callback(os.close, before)
    _check(_libc.unshare(_NEW_NETWORK))
    try:
        made = Machine(address, _current())
        stack.callback(os.close, made._descriptor)
        _ip("link set lo up")
    finally:
        _enter(before)
    return made


def _connect(switch: Machine, *machines: Machine) -> None:
    with switch.entered():
        _ip("link add name switch type bridge mcast_snooping 0")
        _ip("link set switch up")
        for number, machine in enumerate(machines, 1):
            where = f"/proc/{os.getpid()}/fd/{machine._descriptor}"
            _ip(f"link add name port{number} type veth peer name {INTERFACE} netns {where}")
            _ip(f"link set port{number} master switch up")
    for machine in machines:
        with machine.entered():
            _ip(f"address add {machine.address}/24 dev {INTERFACE}")
            _ip(f"link set {INTERFACE} up")
            _until_it_is(INTERFACE, "state UP")
    with switch.entered():
        for number, _ in enumerate(machines, 1):
            _until_it_is(f"port{number}", "state forwarding")


def _until_it_is(interface: str, state: str) -> None:
    """The kernel notes by and by that there is a carrier. Fast DDS uses no interface that is not running, and a
    switch passes nothing on from there."""
    show = f"-oneline -details link show {interface}"
    wait_for(lambda: state in _ip(show), _RUNS_WITHIN_S, lambda: f"of {interface} the kernel does not say {state!r}")


def _ip(arguments: str) -> str:
    return subprocess.run(["ip", *arguments.split()], check=True, capture_output=True, text=True).stdout


def _current() -> int:
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _enter(descriptor: int) -> None:
    _check(_libc.setns(descriptor, _NEW_NETWORK))


def _check(returned: int) -> None:
    if returned:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
