"""The heartbeats of the modules of one process, and the descriptions of their skills."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Callable, Iterator, Mapping

from dimos_streams import clock
from dimos_streams.bus import Bus
from dimos_streams.common.limited_log import LimitedLog
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.common.readable.shortening import at_most
from dimos_streams.common.secrets import redacted
from dimos_streams.common.tasks import end_tasks, report_defect
from dimos_streams.tool_stream.hosting.hosted_module import HostedModule
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.heartbeat import CALLS_BYTES, ENDED, HEARTBEAT_S, MAX_HEALTH
from dimos_streams.tool_stream.liveness.heartbeat_writer import HeartbeatWriter
from dimos_streams.tool_stream.liveness.instances import Instance
from dimos_streams.tool_stream.protocol.channels import STATUS
from dimos_streams.tool_stream.sending.publisher import ToolStreamPublisher

HEARTBEAT_RETRY_S = 0.1
"""The time, in seconds, after which a heartbeat that names calls and is not acknowledged is sent again, while a
receiver lives."""
_DESCRIBE_PAUSES_S = (0.1, 0.8)
"""The shortest and the longest pause between descriptions of all skills, in seconds; each is twice as long as the one
before while many go on asking."""
_BETWEEN_FRAGMENTS_S = 0.005
_CALL_BYTES = 9
"""Bytes of a call in a heartbeat, besides its id."""
_MAX_RIVALS = 1000
"""Number of rivals that are remembered as logged."""
_MANY_ASK = 10
"""Number of requests within one pause that the processes of one run do not exceed, even if all start at once."""

_logger = logging.getLogger(__name__)
_log = LimitedLog(_logger)


class Heart:
    """The sender of the hosted modules' heartbeats, at a steady pace and whenever it is asked to."""

    def __init__(
        self,
        bus: Bus,
        publisher: ToolStreamPublisher,
        directory: ModuleDirectory,
        modules: Mapping[str, HostedModule],
        note: Callable[[], str],
    ) -> None:
        """``modules`` are those of the moment, by name; ``note`` says what is wrong in their process."""
        self._bus = bus
        self._publisher = publisher
        self._directory = directory
        self._modules = modules
        self._note = note
        self._own = Instance(0, "", 0, "")
        self._writer = HeartbeatWriter(self._own)
        self._rivals = NewestEntries[tuple[str, str], None](_MAX_RIVALS)
        """The rivals that are known: names of modules of this process, each with the id of another instance."""
        self._take_token_back: Callable[[], None] = lambda: None
        self._task: asyncio.Task[None] | None = None
        self._described: asyncio.TimerHandle | None = None
        self._asked_again = 0
        self._describe_pause_s = _DESCRIBE_PAUSES_S[0]

    @property
    def beats(self) -> bool:
        """True if it was started and not stopped since."""
        return self._task is not None

    @property
    def started_utime(self) -> int:
        """The start of this instance, as its heartbeats name it."""
        return self._own.started_utime

    def start(self) -> None:
        """Begin to beat, as a new instance."""
        # Virtual runs must not depend on the process they happen in. Live, nobody can guess the name of an instance.
        pid, host = (0, "") if clock.is_virtual() else (os.getpid(), os.uname().nodename)
        started_utime = clock.utime()
        secret = "" if clock.is_virtual() else f"-{secrets.token_hex(6)}"
        self._own = Instance(started_utime, f"{started_utime:x}-{pid:x}{secret}", pid, host)
        self._writer = HeartbeatWriter(self._own)
        self._publisher.instance = self._own.id
        self._take_token_back = self._bus.declare_token(self._own.id)
        self._task = asyncio.get_running_loop().create_task(self._beat(), name="heartbeat")
        self._task.add_done_callback(report_defect)

    async def stop(self) -> None:
        """Beat no more. Stopping twice is fine."""
        self._take_token_back()
        task, self._task = self._task, None
        if task is not None:
            await end_tasks(task)
        if self._described is not None:
            self._described.cancel()
            self._described = None

    async def _beat(self) -> None:
        """Send heartbeats every ``HEARTBEAT_S``, and up to twice more in between if they seem to be lost."""
        while True:
            due = list(self._modules)
            self._log_rivals()
            for pause in (HEARTBEAT_RETRY_S, HEARTBEAT_RETRY_S, HEARTBEAT_S - 2 * HEARTBEAT_RETRY_S):
                sent = clock.monotonic()
                for name in due:
                    if name in self._modules:
                        self.send(name)
                await asyncio.sleep(pause)
                self._look_for_losses()
                due = [name for name in due if not self._publisher.answered(name, sent)]

    def _look_for_losses(self) -> None:
        for hosted in list(self._modules.values()):
            try:
                hosted.loss.look(hosted.calls.values())
            except Exception:  # nobody would look after the calls of the other modules any more
                _log.exception("the calls of module %r could not be looked after", hosted.module.name)

    def _log_rivals(self) -> None:
        """Log each other instance that runs beside a module of this process, once, and one at a time: anybody may
        pretend to be many. Readers see it as its health."""
        for name in self._modules:
            for rival in self._directory.rivals(name):
                if rival.id != self._own.id and (name, rival.id) not in self._rivals:
                    self._rivals[name, rival.id] = None
                    _logger.error("module %r runs beside another of this name: %s", name, rival)
                    return

    def send(self, name: str, *, skills_json: str = "", health: str = "") -> None:
        """Send a module's heartbeat now, besides those that are due; with its own health, unless there is another.

        One that can't be sent is logged: the others' go on.
        """
        try:
            self._send(name, skills_json, health)
        except Exception:
            _log.exception("a heartbeat of module %r could not be sent", name)

    def _send(self, name: str, skills_json: str, health: str) -> None:
        """Send a module's heartbeat, in several parts if there are many calls, each of one datagram: to receivers a
        call is as good in one as in another."""
        hosted = self._modules[name]
        health = health or hosted.health
        if health == "ok":
            health = self._bus.notice or self._note() or health
        health = at_most(redacted(health), MAX_HEALTH)
        for calls in _shares(self._publisher.heartbeat_calls(name)):
            data = self._writer.encoded(
                name,
                health=health,
                skills_version=hosted.skills_version,
                skills_json=skills_json,
                state_json=hosted.state_json,
                calls=calls,
            )
            self._bus.publish(STATUS, data)
            skills_json = ""

    def announce_stop(self, name: str) -> None:
        """Say that a module begins to stop, so that a replay of the recording stops it at the same moment."""
        if self.beats:
            self.send(name)

    def say_goodbye(self, name: str) -> None:
        """Say that a module ends here, so that its next instance is believed at once."""
        if self.beats:
            self.send(name, health=ENDED)

    def introduce(self, name: str) -> None:
        """Describe a module's skills now; many of them part by part, because a receiver's buffer is small."""
        first, *others = self._modules[name].descriptions
        self.send(name, skills_json=first)
        for number, text in enumerate(others, start=1):
            asyncio.get_running_loop().call_later(number * _BETWEEN_FRAGMENTS_S, self._send_fragment, name, text)

    def describe(self) -> None:
        """Describe all skills at once, but only once more to many who ask at the same moment."""
        if self._described is None:
            self._described = asyncio.get_running_loop().call_later(self._describe_pause_s, self._describe_again)
            self._send_skills()
        else:
            self._asked_again += 1

    def _describe_again(self) -> None:
        self._described = None
        shortest, longest = _DESCRIBE_PAUSES_S
        many = self._asked_again > _MANY_ASK
        self._describe_pause_s = min(2 * self._describe_pause_s, longest) if many else shortest
        if self._asked_again:
            self._asked_again = 0
            self.describe()

    def _send_skills(self) -> None:
        for name in self._modules:
            self.introduce(name)

    def _send_fragment(self, name: str, text: str) -> None:
        if self.beats and name in self._modules and text in self._modules[name].descriptions:
            self.send(name, skills_json=text)


def _shares(calls: list[tuple[str, int]]) -> Iterator[list[tuple[str, int]]]:
    """Yield the calls of each heartbeat; there is at least one heartbeat, perhaps without calls."""
    share: list[tuple[str, int]] = []
    room = CALLS_BYTES
    for call in calls:
        room -= len(call[0]) + _CALL_BYTES
        if room < 0:
            yield share
            share, room = [], CALLS_BYTES - len(call[0]) - _CALL_BYTES
        share.append(call)
    yield share
