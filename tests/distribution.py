"""The order of tests, and which worker runs what: pytest's hooks for that, which conftest.py takes over.

Tests that start processes and look at the time are in chains: a chain's tests run one after another in one worker.
A chain waits for its robots half of the time. Workers that run no chain fill that time with all other tests, behind
the chains: whoever wants a processor for a chain has it first.
"""

from __future__ import annotations

import functools
import os
import zlib

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

_OF_PROCESSES = frozenset({"browser", "bus_url", "zenoh_url", "free_port", "machine", "rover"})
"""Fixtures of tests that start processes and look at the time."""
_ROBOTS_OF_PAGES = {"live pages": frozenset({"begun_run", "busy"}), "attentive pages": frozenset({"robot"})}
"""Those that pages watch for long, and those that wait for what a page does, by their tests' chains."""
_BROWSER, _ROBOTS = "browser", "robots"
_CHAINS = {
    _ROBOTS: frozenset({"agent", "hostile", "live"}),
    "commands": frozenset({"cli"}),
    "documents": frozenset({"docs"}),
    "machines": frozenset({"bridge", "bus", "hub", "machines", "ros2", "runtime"}),
    **dict.fromkeys(_ROBOTS_OF_PAGES, frozenset[str]()),
    "pages": frozenset({_BROWSER}),
}
"""The folders of each chain; the longest chain begins first. Pages that watch a robot for long have a browser of
their own: it waits for the robot, and others need not."""
_TOGETHER = ("packaging", "docs", "recording", "viewer")
"""Folders whose tests share what is costly to make."""
_DATABASES = "postgresql"
"""The group, and the first parameter, of tests that share a server of databases."""
_COMPUTING = "delivery"
"""The folder whose tests never wait: they come first, while chains wait for their robots. All others come mixed
behind them: neighbours often wait for the same kind of thing, and while all workers wait nobody computes."""
_BRIEF = frozenset({"blueprint", "common", "core", "messages", "robot"})
"""Folders whose tests hardly wait, and whose files are soon done: they come last, or all workers but one would wait
at the end for a file that waits."""
_TO_ROBOTS, _TO_CHAINS = 3, 2
"""So much does give way to robots what does not run any, and once more to all chains what belongs to none."""
_AT_ONCE = 2
"""So many chains more than processors run at once; with more, they are late."""
_FILLING = 2
"""So many workers run what belongs to no chain, while there are chains. With one the processors idled for a twelfth
of the time; a third fills hardly more, and each has to import all."""


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Fast tests wait now and then, and there are no chains in them that others would fill: one worker more fills
    that, and another one would take as long to find all tests as it saves."""
    fast = config.getoption("markexpr") == "not slow"
    return len(os.sched_getaffinity(0)) + _AT_ONCE + (1 if fast else _FILLING)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Several workers are handed the chains first, then what only computes, then all the rest, what is brief last."""
    several = hasattr(config, "workerinput")
    order = [*_CHAINS, *_TOGETHER, _DATABASES]
    places = {}
    for item in items:
        group = _group(item)
        if group in _CHAINS:
            item.add_marker(pytest.mark.slow)
        if group is not None:
            item.add_marker(pytest.mark.xdist_group(group))
        if group is not None:
            places[item] = order.index(group), 0
        elif several:
            places[item] = len(order) + _turn(item), zlib.crc32(_file(item.nodeid).encode())
        else:
            slow = item.get_closest_marker("slow") is not None
            places[item] = len(order) + (not slow), 0
    items.sort(key=places.__getitem__)


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _turn(item: pytest.Item) -> int:
    """Return whether an item of no group comes first, between, or last of these."""
    folder = item.nodeid.split("/")[1]
    return 0 if folder == _COMPUTING else 1 + (folder in _BRIEF)


def _group(item: pytest.Item) -> str | None:
    """The name of what the item's worker runs as well, and nobody else."""
    folder, fixtures = item.nodeid.split("/")[1], getattr(item, "fixturenames", ())
    if folder == _BROWSER:
        for chain, robots in _ROBOTS_OF_PAGES.items():
            if not robots.isdisjoint(fixtures):
                return chain
    if item.get_closest_marker("live") is not None or not _OF_PROCESSES.isdisjoint(fixtures):
        return next((chain for chain, folders in _CHAINS.items() if folder in folders), _ROBOTS)
    if folder in _TOGETHER:
        return folder
    return _DATABASES if "postgres_server" in fixtures or f"[{_DATABASES}" in item.nodeid else None


class ChainScheduling(LoadGroupScheduling):  # type: ignore[misc]
    """Hands chains to all workers but the last ones; these take what belongs to no chain as long as there is any.

    Of what has no group a file's tests run in one worker: they share what the file makes for all of them.
    """

    def _split_scope(self, nodeid: str) -> str:
        group: str = super()._split_scope(nodeid)
        return _file(nodeid) if group == nodeid else group

    def _assign_work_unit(self, node: WorkerController) -> None:
        if self._fills(node):
            other = next((unit for unit in self.workqueue if unit not in _CHAINS), None)
            if other is not None:
                self.workqueue.move_to_end(other, last=False)
        super()._assign_work_unit(node)

    def _fills(self, node: WorkerController) -> bool:
        number = int(node.gateway.id.removeprefix("gw"))
        return number >= len(os.sched_getaffinity(0)) + _AT_ONCE


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ChainScheduling | None:
    """Where tests are not handed out by their groups there are no chains."""
    return ChainScheduling(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Robots come before all else, and chains, which look at the time and are handed out first, before the rest."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    mark = item.get_closest_marker("xdist_group")
    group = mark.args[0] if mark is not None else None
    if group != _ROBOTS:
        _give_way(_TO_ROBOTS)
    if group not in _CHAINS:
        _give_way(_TO_CHAINS)


@functools.cache
def _give_way(by: int) -> None:
    """From now on the other workers' processes have the processors first."""
    os.nice(by)
