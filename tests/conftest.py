"""Every session has a bus and ports of its own, and leaves nothing in the user's directories."""

from __future__ import annotations

import functools
import gc
import itertools
import os
import random
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from dimos_streams.common.secrets import Redaction
from dimos_streams.common.secrets import known as known_secrets
from tests import ports
from tests.distribution import (
    pytest_collection_modifyitems,
    pytest_runtest_setup,
    pytest_xdist_auto_num_workers,
    pytest_xdist_make_scheduler,
)
from tests.forked_workers import pytest_xdist_setupnodes
from tests.time_limit import pytest_timeout_set_timer

__all__ = [
    "pytest_collection_modifyitems",
    "pytest_runtest_setup",
    "pytest_timeout_set_timer",
    "pytest_xdist_auto_num_workers",
    "pytest_xdist_make_scheduler",
    "pytest_xdist_setupnodes",
]

STRANGER = 65534
"""The id of a user who is neither root nor the one that runs a test."""
_COLLECTED_AFTER = (5000, 50, 50)
_LONGEST_OF_NAME = 200


def pytest_configure() -> None:
    """Of the hundreds of processes that tests start only the first of a kind compiles what it imports; none starts
    threads for matrices, which takes as long as all else of numpy; none reads the machine's certificates, which takes
    each client of a model longer than all else: tests have their own; and for none does pydantic read what all that
    is installed declares, to find plugins, of which there are none."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    os.environ.pop("SSL_CERT_FILE", None)
    os.environ["SSL_CERT_DIR"] = str(Path(__file__).parent)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the collector from looking through all that is imported, now and ever after: a sixth of the tests' time;
    and from looking at what tests have made before there is much of it: a twentieth."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(*_COLLECTED_AFTER)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Long texts are named by their length: a test's name goes from process to process with each of its reports."""
    if isinstance(val, str | bytes) and len(val) > _LONGEST_OF_NAME:
        return f"{argname} of {len(val)}"
    return None


# How long an example takes is the machine's; pytest's timeout bounds the test. Examples are the same in each run:
# a case in a million does not refuse a change that has nothing to do with it.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile("other examples", settings.get_profile("any machine"), derandomize=False)
settings.load_profile("any machine")


@pytest.fixture(scope="session")
def bus_url() -> str:
    """LCM multicast on a group and port that no other session uses, kept on this machine."""
    return ports.free_bus()


@pytest.fixture(scope="session")
def zenoh_url() -> str:
    """Zenoh on this machine, in a domain that no other session has."""
    pytest.importorskip("zenoh", reason="the extra `zenoh` is not installed")
    return f"zenoh:///t{random.SystemRandom().getrandbits(48):x}"


@pytest.fixture(scope="session")
def lcm_library() -> Any:
    """The module ``lcm``, for what other programs do with it. It and its tools need GLib from the system."""
    return pytest.importorskip("lcm")


@pytest.fixture
def settled_log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """For tests that look at all that is logged. What earlier tests have left behind is found before, which takes a
    moment: asyncio logs a forgotten error when it is collected. What stays is not looked through again."""
    gc.collect()
    gc.freeze()
    caplog.clear()
    return caplog


@pytest.fixture
def free_port() -> int:
    """A TCP port for a server of this test."""
    return ports.free_port()


@pytest.fixture
def strangers_link(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, str], None]:
    """A function that makes another user's link of a name, for a test that is no longer root's then."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a link away")

    def make(link: Path, leads_to: str) -> None:
        link.symlink_to(leads_to)
        os.chown(link, STRANGER, -1, follow_symlinks=False)
        monkeypatch.setattr(os, "geteuid", lambda: 4242)

    return make


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.fixture(autouse=True, scope="module")
def apps_end_with_their_tests() -> Iterator[None]:
    """FastAPI remembers the routes of the latest hundred apps, and a route keeps its whole bridge: the collector
    would look through all of those, which takes a twentieth of the tests' time."""
    yield
    for cache in _caches_in(tuple(name for name in sys.modules if f"{name}.".startswith("fastapi."))):
        cache.cache_clear()


@functools.lru_cache(maxsize=1)
def _caches_in(modules: tuple[str, ...]) -> list[functools._lru_cache_wrapper[Any]]:
    found = [value for name in modules for value in vars(sys.modules[name]).values()]
    return [value for value in found if isinstance(value, functools._lru_cache_wrapper)]


_tests = itertools.count()


@pytest.fixture(autouse=True)
def isolated_environment(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the user's reaches a test, and no test's file reaches the user.

    The directory is made by those that need one: making and removing thousands takes seconds.
    """
    for name in [name for name in os.environ if name.startswith("DIMOS_STREAMS")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("LCM_DEFAULT_URL", raising=False)
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", str(tmp_path_factory.getbasetemp() / f"state{next(_tests)}"))


@pytest.fixture(autouse=True)
def no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The secrets of one test are none in the next: what is a key here may be any word there."""
    monkeypatch.setattr(known_secrets, "_process", Redaction())
