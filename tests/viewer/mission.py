"""A mission with an agent, recorded in virtual time, and what its bridge knew meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dimos_streams import clock
from dimos_streams.agent.module import Agent
from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bridge.monitor.collector import Collector
from dimos_streams.bridge.monitor.reports import Reports
from dimos_streams.bridge.monitor.robots import Robots
from dimos_streams.bridge.monitor.sources import RunSources
from dimos_streams.clock import run_virtual
from dimos_streams.operator.messages.agent import AgentSnapshot
from dimos_streams.operator.messages.run import MonitorSnapshot
from dimos_streams.testing import MissionRun

ZONE = {"name": "kitchen", "polygon": [[1, 1], [3, 1], [3, 2.5], [1, 2.5]]}
SETTINGS = {"robot.camera_width": 160, "robot.camera_height": 120, "agent.zones": [ZONE]}


@dataclass
class Known:
    """What a run knew at one moment."""

    utime: int
    state: MonitorSnapshot
    agent: AgentSnapshot


@dataclass
class Mission:
    """A recording, and what the run itself knew."""

    log: Path
    known: list[Known]


def record(log: Path) -> Mission:
    """Somebody is followed, the agent is paused, a robot is stopped and released."""
    made = Mission(log, [])
    run_virtual(_mission(made))
    return made


async def _mission(made: Mission) -> None:
    everything_small = ("*depth*", "*/instances*")
    async with MissionRun(
        "follow-person", record=made.log, seed=7, settings=SETTINGS, without=everything_small
    ) as run:
        broker = run.gateway
        assert isinstance(broker, Broker)
        robots = Robots(run.bus)
        collector = Collector(RunSources(broker, Reports(broker, lambda: None), robots))
        agent = run.module("agent")
        assert isinstance(agent, Agent)

        async def note(seconds: float = 0.37) -> None:
            collector.snapshot(0)  # from now on it listens
            await run.sleep(seconds)
            state = collector.snapshot(0)
            made.known.append(Known(clock.utime(), state, agent.core.operators.snapshots.take(watched=False)))
            await run.sleep(0.013)  # what is done next is of another moment

        await note()
        await run.say("follow the person in the red shirt for 6 seconds")
        await note(2.0)
        await (await run.call("pause", reason="look")).result()
        await note(0.6)
        await (await run.call("resume")).result()
        await note(0.4)
        await broker.stops.stop_robot("", "careful")
        await note(0.8)
        await broker.stops.release("")
        await note(1.0)
        await (await run.say("turn left 20")).result()
        await note(0.5)
        robots.stop()
