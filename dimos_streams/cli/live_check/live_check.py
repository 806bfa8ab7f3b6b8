"""The live check: it listens to a bus, and compares that with what a blueprint needs."""

from __future__ import annotations

from dimos_streams.blueprint import Blueprint
from dimos_streams.bus import Bus, create_bus, transport_of
from dimos_streams.cli.live_check.hearing import Listener, listen
from dimos_streams.cli.live_check.judgement import State, clock_problems, judge
from dimos_streams.cli.live_check.needs import motors_of, needs_of
from dimos_streams.cli.live_check.report import LiveReport
from dimos_streams.cli.terminal.progress import Advance, progress
from dimos_streams.documents.problem import Problem
from dimos_streams.errors import UserError


async def listen_to(url: str, blueprint: Blueprint, seconds: float) -> LiveReport:
    """Do ``check_live`` on a bus of other processes, with a progress bar. Raises ``BusError``, and ``UserError`` for
    a URL of no such bus."""
    if transport_of(url) == "memq":
        raise UserError(f"{url!r} does not leave its process: there is nobody to listen to")
    bus = create_bus(url)
    await bus.open()
    try:
        with progress(f"listening to {bus.url}", seconds) as advance:
            return await check_live(blueprint, bus, seconds, advance)
    finally:
        await bus.close()


async def check_live(
    blueprint: Blueprint, bus: Bus, seconds: float, advance: Advance = lambda done: None
) -> LiveReport:
    """Report what a blueprint needs, and what there is of it on an open bus within ``seconds``.

    Topics from outside of the blueprint have to be there; those of its own modules only if any of them is alive.
    """
    needs, motors = needs_of(blueprint), motors_of(blueprint)
    driven = {port.channel: bus.has_subscribers(port.channel) for port in motors}
    listener = Listener(needs, blueprint.modules)
    await listen(bus, listener, seconds, advance)
    rows = judge(needs, listener)
    problems = [problem for row in rows for problem in row.problems]
    for port in motors:
        if not (driven[port.channel] or bus.has_subscribers(port.channel)):
            problems.append(Problem(f"nobody listens to {port.topic}: what {port.name} says moves no robot"))
    if not any(row.heard or row.problems for row in rows):
        problems.append(Problem(_nothing(blueprint, any(row.state is State.NOT_RUNNING for row in rows), bus.url)))
    return LiveReport(bus=bus.url, seconds=seconds, rows=tuple(rows), problems=(*problems, *clock_problems(rows)))


def _nothing(blueprint: Blueprint, waits: bool, bus: str) -> str:
    if not waits:
        return f"no module of {blueprint.name!r} needs a topic: there is nothing to listen to"
    return (
        f"no module of {blueprint.name!r} is alive on {bus}, and none needs anything from outside: run it, then check"
    )
