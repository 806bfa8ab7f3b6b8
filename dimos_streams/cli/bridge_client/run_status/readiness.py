"""The readiness of runs, for the health check of a container, or a script that waits: all is there and answers.

What waiting or a restart does not mend does not count: robots that an operator has stopped, calls that go on though
they were asked to end, warnings, a full disk. Whoever restarts what is unhealthy would end a run for it that works.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dimos_streams.cli.bridge_client.run_status.state import AnsweringBridge, RunState, UnreachableBridge


def unready(states: Iterable[RunState]) -> list[str]:
    """Return the parts of runs that are not ready, each with its state; also that no run lives."""
    runs = list(states)
    return [text for state in runs for text in _unready(state)] if runs else ["no run lives"]


def _unready(state: RunState) -> Iterator[str]:
    bridge = state.bridge
    if isinstance(bridge, UnreachableBridge):
        yield f"bridge {bridge.url} {bridge.status}"
    if state.supervisor == "suspended":
        yield f"process {state.pid}, which supervises the run, suspended"
    for machine in state.machines:
        if machine.problem:
            yield f"machine {machine.name!r} {machine.problem}"
            continue
        for module in machine.modules:
            if not module.alive:
                yield f"module {module.name} on {machine.name!r} silent"
    for process in state.processes:
        if process.state != "ready":
            yield f"process {process.label} {process.state}"
        elif process.failing:  # it is only up between two of its ends, as far as is known
            yield f"process {process.label} keeps failing: {process.failing}"
    for module in state.modules:
        if isinstance(bridge, AnsweringBridge) and not module.alive:  # whether it is, only a bridge knows
            yield f"module {module.name} {'unheard' if module.alive is None else 'silent'}"
