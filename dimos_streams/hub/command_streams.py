"""The streams of commands that robots hold at this hub."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncGenerator
from concurrent.futures import Executor

from pydantic_core import from_json, to_json

from dimos_streams import __version__, clock
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.tasks import OwnedTasks, outlasting
from dimos_streams.fleet.commands import Command, Hello, two_robots
from dimos_streams.fleet.lanes import lane_of
from dimos_streams.fleet.protocol import COMMANDS_AGE_S, COMMANDS_PING_S, MAX_EXPIRY_S, ProcessId, StreamId
from dimos_streams.hub.storage.rows import DueCommand, StorageUnavailableError
from dimos_streams.hub.storage.storage import HubStorage
from dimos_streams.hub.threads import in_thread
from dimos_streams.hub.wakeup import Wakeup
from dimos_streams.serving.events.event_frame import event_frame

_KEEP_S = 3.0
_VALID_S = 12.0
"""Time, in seconds, for which a robot counts as connected after its hub has said so."""
_DOUBLED_AGE_S = 65.0
"""The age, in seconds, at which the stream of one of two processes that claim one robot ends: a little more than a
hub remembers that there were two."""
_MAX_CLOCKS = 100_000

_log = LimitedLog(logging.getLogger(__name__), period_s=10.0)


class CommandStream:
    """One stream: a robot, the id that the robot gave to it, and when its request came."""

    def __init__(self, robot: str, name: str, id: StreamId) -> None:
        self.robot, self.name, self.id = robot, name, id
        self.doubled = False
        """True if two processes take turns as the robot. The stream is short then, so that the robot hears soon if it
        is alone."""
        self.began = clock.steady()
        self._commands: asyncio.PriorityQueue[tuple[int, int, Command | None]] = asyncio.PriorityQueue()
        """The commands to be sent, no more than the storage lets wait for one robot. None ends the stream."""
        self._numbers = itertools.count()

    def hand(self, command: Command) -> None:
        """Send a command; one for safety goes before all that wait and are not."""
        first = lane_of(command.method, command.path, command.role) == "safety"
        self._commands.put_nowait((0 if first else 1, next(self._numbers), command))

    def end(self) -> None:
        """End the stream, behind what waits."""
        self._commands.put_nowait((2, next(self._numbers), None))

    async def frames(self, hub: str) -> AsyncGenerator[bytes, None]:
        """Yield server-sent events, until another stream of the robot begins or this one is old."""
        yield _frame("hello", Hello(version=__version__, hub=hub, robot=self.robot, doubled=self.doubled))
        age_s = _DOUBLED_AGE_S if self.doubled else COMMANDS_AGE_S
        while (left := self.began + age_s - clock.steady()) > 0:
            try:
                async with asyncio.timeout(min(left, COMMANDS_PING_S)):
                    _, _, command = await self._commands.get()
            except TimeoutError:
                yield b": ping\n\n"
                continue
            if command is None:
                return
            yield _frame("command", command)


class CommandStreams:
    """The streams of commands at this hub, and the robots that were heard of here. Use from the loop only."""

    def __init__(self, storage: HubStorage, executor: Executor, hub: str) -> None:
        """``hub`` is the name of its process."""
        self._hub = hub
        self._storage = storage
        self._losses = storage.sequence.losses
        """The number of losses of ``storage`` of which robots were told."""
        self._executor = executor
        self._streams: dict[str, CommandStream] = {}
        self._ending = OwnedTasks()
        self._numbers = itertools.count(1)
        self._clocks: dict[str, int] = {}
        self._wakeup = Wakeup()

    def __len__(self) -> int:
        return len(self._streams)

    @property
    def hub(self) -> str:
        """The name that robots are told: another one after each loss of the database, which makes them ask what it
        has of them, as after a restart."""
        losses = self._storage.sequence.losses
        return f"{self._hub}/{losses}" if losses else self._hub

    def wake(self) -> None:
        """Note that there may be a command."""
        self._wakeup.wake()

    def hear(self, robot: str, sent_utime: int) -> None:
        """Note that a robot has sent something, at a time by its own clock."""
        if robot in self._clocks or len(self._clocks) < _MAX_CLOCKS:
            self._clocks[robot] = sent_utime - clock.utime()

    async def open(self, robot: str, id: StreamId, process: ProcessId) -> CommandStream:
        """Open a new stream for a process of a robot; the one that the robot had is over. If whoever waits for it is
        cancelled, it is closed once it is open.

        Raises ``StorageUnavailableError``.
        """
        stream = CommandStream(robot, f"{self._hub}/{next(self._numbers)}", id)
        noting = asyncio.create_task(self._note_begin(stream, process), name=f"begin of {stream.name}")
        try:
            stream.doubled = await outlasting(noting)
        except asyncio.CancelledError:
            noting.add_done_callback(lambda _: self._spawn_end(stream))
            raise
        if stream.doubled:
            _log.warning(
                "%s; until then no calls of it are taken, and no stop counts as confirmed", two_robots(robot)
            )
        if (old := self._streams.get(robot)) is not None:
            _log.warning("robot %r has a new stream of commands; the one that it had is over", robot)
            old.end()
        self._streams[robot] = stream
        self.wake()
        return stream

    async def close(self, stream: CommandStream) -> None:
        """Note that a stream's connection is over, also if whoever waits for it is cancelled: a client that has gone
        cancels all that its answer waits for."""
        if self._streams.get(stream.robot) is stream:
            del self._streams[stream.robot]
        await asyncio.shield(self._spawn_end(stream))

    async def _note_begin(self, stream: CommandStream, process: ProcessId) -> bool:
        connect = self._storage.robots.connect
        return await in_thread(self._executor, connect, stream.robot, stream.name, process, _VALID_S)

    def _spawn_end(self, stream: CommandStream) -> asyncio.Task[None]:
        return self._ending.spawn(self._note_end(stream), name=f"end of {stream.name}")

    async def _note_end(self, stream: CommandStream) -> None:
        try:
            await in_thread(self._executor, self._storage.robots.disconnect, stream.robot, stream.name)
        except StorageUnavailableError as error:
            _log.warning("that robot %r is not connected any more can't be noted: %s", stream.robot, error)

    def end(self) -> None:
        """End all streams: robots ask again, perhaps another hub."""
        for stream in self._streams.values():
            stream.end()

    async def run(self) -> None:
        """Hand commands to their streams, until cancelled."""
        while True:
            try:
                await self._hand_on()
            except StorageUnavailableError as error:
                _log.warning("commands can't be read: %s", error)
            except Exception:  # robots wait for the commands that come after it
                _log.exception("commands can't be read because of a defect")
            await self._wakeup.wait()

    async def keep(self) -> None:
        """Note in the storage who is connected and was heard of, until cancelled."""
        while True:
            await asyncio.sleep(_KEEP_S)
            if self._losses != self._storage.sequence.losses:
                self._losses = self._storage.sequence.losses
                self.end()
            streams = {robot: stream.name for robot, stream in self._streams.items()}
            clocks, self._clocks = self._clocks, {}
            try:
                followed = await in_thread(self._executor, self._storage.robots.keep, streams, _VALID_S)
                await in_thread(self._executor, self._storage.robots.hear, clocks)
            except StorageUnavailableError as error:
                _log.warning("which robots are connected can't be noted: %s", error)
                continue
            except Exception:  # all robots would count as gone
                _log.exception("which robots are connected can't be noted because of a defect")
                continue
            for robot in followed:
                stream = self._streams.get(robot)
                if stream is not None and stream.name == streams[robot]:
                    stream.end()

    async def _hand_on(self) -> None:
        streams = {robot: stream.name for robot, stream in self._streams.items()}
        if not streams:
            return
        # Read before the database is asked how long commands are valid: what that takes is not added to it.
        now = clock.steady()
        for due in await in_thread(self._executor, self._storage.commands.due, streams):
            stream = self._streams.get(due.robot)
            if stream is None:
                continue
            try:
                command = _command(due, stream, now)
            except ValueError as error:  # the others, and those to come, must not wait for it
                _log.warning("command %d for robot %r is none, and is not sent: %s", due.id, due.robot, error)
            else:
                stream.hand(command)


def _command(due: DueCommand, stream: CommandStream, now: float) -> Command:
    """The command as its stream has it. Raises ``ValueError`` if it can't be one."""
    if due.expires_in_s > MAX_EXPIRY_S:
        raise ValueError(f"it would be valid for {due.expires_in_s:.0f} s, one may be for {MAX_EXPIRY_S:.0f} s")
    return Command(
        id=due.id,
        key=due.key,
        stream=stream.id,
        expires_at_s=max(0.0, now - stream.began + due.expires_in_s),
        asked_by=due.asked_by,
        role=due.role,
        method=due.method,
        path=due.path,
        body=from_json(due.body),
    )


def _frame(kind: str, message: Hello | Command) -> bytes:
    return event_frame(kind.encode(), to_json(message))
