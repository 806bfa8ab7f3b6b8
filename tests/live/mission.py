"""A running robot of real processes, as tests drive it and break it."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import random
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from dimos_streams import clock
from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.model import Blueprint
from dimos_streams.bus import create_bus
from dimos_streams.client.http_gateway import HttpGateway
from dimos_streams.common.process.run_owner import first_thread
from dimos_streams.errors import MessageError, SkillError
from dimos_streams.messages.codec import decode
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.time import utime_of
from dimos_streams.runtime.events import ProcessView, RunEvent
from dimos_streams.runtime.live.supervisor import Supervisor
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.plan import library_imports, plan_modules
from dimos_streams.runtime.processes.fork_server import start_forkserver
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.gateway import CallView
from tests.helpers import until

INPUT = "look out for a person in a red shirt and follow them"
_SMALL = {"robot.camera_width": 160, "robot.camera_height": 120}
"""Nobody looks at the pictures, which take half of what a robot takes of a processor."""


@dataclass
class Mission:
    """The run, its bridge, and what was seen of it."""

    supervisor: Supervisor
    gateway: HttpGateway
    run_events: list[RunEvent] = field(default_factory=list)
    events: list[ToolEvent] = field(default_factory=list)
    speeds: list[tuple[float, float]] = field(default_factory=list)
    """Loop time at which the robot measured it, and speed (m/s, or rad/s if that is more), by odometry message."""

    def kill(self, process: str, number: signal.Signals = signal.SIGKILL) -> float:
        """Signal a process; the loop's time of it."""
        pid = self.process(process).pid
        assert pid is not None
        os.kill(pid, number)
        return clock.monotonic()

    async def until_restarted(self, process: str, times: int = 1) -> None:
        """Until a process is ready after so many restarts: its pause is 5 s at most, its start what the machine makes
        of it. One restart more than the test has caused is a failure, and says why."""

        def back() -> bool:
            view = self.process(process)
            assert view.restarts <= times, (view, self.restarts_of(process))
            return view.restarts == times and view.state == "ready"

        try:
            await until(back, 60.0)
        except TimeoutError:
            raise AssertionError(f"{self.process(process)}: {self.restarts_of(process)}") from None

    def waited_s(self, process: str) -> float:
        """Seconds for which a process has waited for a processor since its start."""
        return first_thread(self.process(process).pid or 0).waited_s

    def restarts_of(self, process: str) -> list[str]:
        return [event.text for event in self.run_events if event.process == process and event.kind == "restarting"]

    def process(self, label: str) -> ProcessView:
        return next(view for view in self.supervisor.processes() if view.label == label)

    async def health(self, module: str) -> str:
        """The view of a module in ``/modules``."""
        answer = await asyncio.to_thread(requests.get, f"{self.gateway.url}/modules", timeout=10)
        return str(next(view["health"] for view in answer.json() if view["name"] == module))

    async def follow(self) -> str:
        """Ask the agent to look out and follow; the id of the follow call, once the robot drives."""
        await self.until_offered("say", "look_out_for", "follow_person")
        await self.gateway.call("say", {"text": INPUT}, caller="operator")
        await until(lambda: any(e.skill == "follow_person" and e.type == "update" for e in self.events))
        await until(lambda: self.speeds and self.speeds[-1][1] > 0.3)
        return next(event.call_id for event in self.events if event.skill == "follow_person")

    async def until_offered(self, *skills: str) -> None:
        """On a bus that loses messages it takes a moment until all modules have introduced themselves."""
        async with asyncio.timeout(40):
            while not {skill.name for skill in await self.gateway.skills()}.issuperset(skills):  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    async def call(self, skill: str, /, **arguments: object) -> CallView:
        """Call a skill and wait for its close; while its module is on its way back, try again."""
        seen: CallView | str = "not called"
        try:
            async with asyncio.timeout(20):
                while isinstance(seen, str):
                    try:
                        seen = await self.view(await self.gateway.call(skill, arguments, caller="operator"))
                    except SkillError as error:
                        seen = str(error)
                        await asyncio.sleep(0.1)
                while seen.state != "closed":
                    await asyncio.sleep(0.02)
                    seen = await self.view(seen.call_id)
                return seen
        except TimeoutError:
            raise AssertionError(f"{skill} was not done after 20 s: {seen}; {await self.modules()}") from None

    async def drive(self, skill: str, /, **arguments: object) -> CallView:
        """As ``call``, and again where a machine that was held up had no odometry for it: then a robot stands, as it
        should."""
        async with asyncio.timeout(40):
            while True:
                seen = await self.call(skill, **arguments)
                if "odometry has been silent" not in seen.text:
                    return seen

    async def modules(self) -> str:
        """The modules as ``GET /modules`` shows them."""
        return (await asyncio.to_thread(requests.get, f"{self.gateway.url}/modules", timeout=10)).text

    async def view(self, call_id: str) -> CallView:
        """One call as the bridge shows it."""
        answer = await asyncio.to_thread(requests.get, f"{self.gateway.url}/calls/{call_id}", timeout=20)
        return CallView.model_validate_json(answer.content)

    def stopped(self) -> dict[str, Any]:
        """What an operator has stopped, as ``/healthz`` shows it. Blocks."""
        health: dict[str, Any] = requests.get(f"{self.gateway.url}/healthz", timeout=10).json()
        return dict(health["stopped"])

    async def end_calls(self) -> None:
        """Cancel whatever is open, until nothing is."""
        deadline = clock.monotonic() + 30
        still_open: list[CallView] = []
        refused: dict[str, str] = {}
        while clock.monotonic() < deadline:
            with contextlib.suppress(SkillError):
                still_open = await self.gateway.calls(open_only=True)
                if not still_open:
                    return
            for call in still_open:
                try:
                    await self.gateway.cancel(call.call_id, "the test is over")
                except SkillError as error:
                    refused[call.call_id] = str(error)
            await asyncio.sleep(0.2)
        raise AssertionError(f"still open: {still_open}; could not be cancelled: {refused}")

    async def lost_after(self, call_id: str, moment: float) -> float:
        """Wait until a call is closed as lost; how many seconds after a moment that happened."""
        await until(lambda: any(e.call_id == call_id and e.type == "close" for e in self.events))
        (close,) = (e for e in self.events if e.call_id == call_id and e.type == "close")
        assert close.outcome is Outcome.LOST
        return loop_time(close.utime) - moment

    def still_since(self, moment: float) -> float | None:
        """Seconds from a moment to the first odometry from which on the robot stood; None if it still moves."""
        later = [(at, speed) for at, speed in self.speeds if at >= moment]
        moving = [at for at, speed in later if speed > 0.05]
        if not later or (moving and moving[-1] == later[-1][0]):
            return None
        return next(at for at, speed in later if not moving or at > moving[-1]) - moment

    def texts_of(self, call_id: str) -> list[str]:
        return [event.text for event in self.events if event.call_id == call_id]


def loop_time(utime: int) -> float:
    """When something happened, on the running loop's clock: a busy machine shows it to a test later than that."""
    return clock.monotonic() - (clock.utime() - utime) / 1e6


@contextlib.asynccontextmanager
async def running(
    bus_url: str, port: int, run_dir: Path, blueprint: Blueprint | None = None, **more: Any
) -> AsyncIterator[Mission]:
    """Start the stock robot, or another blueprint with a bridge, and listen to it; ``more`` are ``RunOptions``."""
    bus = create_bus(bus_url)
    await bus.open()
    options = RunOptions(bus_url=bus_url, port=port, run_dir=run_dir, **more)
    run_events: list[RunEvent] = []
    stock = resolve("follow-person").configured(_SMALL)
    configured = (blueprint or stock).configured({"bridge.port": port})
    start_forkserver(library_imports(plan_modules(stock)))  # as `run` does; one forks the workers of all these tests
    supervisor = Supervisor(configured, options, run_events.append)
    gateway = HttpGateway(options.bridge_url, rng=random.Random(0))
    mission = Mission(supervisor, gateway, run_events)

    def on_odometry(channel: str, data: bytes) -> None:
        try:
            odometry = decode(Odometry, data, channel=channel)
        except MessageError:  # some tests send such
            return
        twist = odometry.twist.twist
        speed = max(math.hypot(twist.linear.x, twist.linear.y), abs(twist.angular.z))
        mission.speeds.append((loop_time(utime_of(odometry.header)), speed))

    async def listen() -> None:
        async for entry in gateway.events(after=0):
            mission.events.append(entry.event)

    bus.subscribe("/odom#nav_msgs.Odometry", on_odometry)
    await supervisor.start()
    listening = asyncio.create_task(listen())
    try:
        yield mission
    finally:
        listening.cancel()
        await asyncio.wait([listening])
        gateway.close()
        await supervisor.stop()
        await bus.close()
