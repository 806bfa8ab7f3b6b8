"""The module that speaks for the part of one machine: to the other parts, and to operators through the bridge."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from dimos_streams import clock
from dimos_streams.errors import SkillError
from dimos_streams.messages.dimos_streams import ClockEcho
from dimos_streams.module import Module, ModuleConfig, RunContext
from dimos_streams.runtime.parts.clock_offsets import SLACK_US, ClockOffsets
from dimos_streams.runtime.parts.log_chunks import LogChunk, names_of, read_chunk
from dimos_streams.runtime.parts.part import Part
from dimos_streams.skill import Call, skill
from dimos_streams.streams import In, Out
from dimos_streams.tool_stream.liveness.part_state import PART, ClockOffset, PartState, part_name

CLOCKS = "/clocks"
"""The topic on which machines measure how their clocks differ."""
_FIRST_ECHOES = 8
_FIRST_EVERY_S, _EVERY_S = 0.2, 2.0
_ANSWER_FIRST_S = 0.3
_MOST_NAMES = 1500
"""Maximum number of characters of all modules' names: a state has 4000 bytes."""


class PartModule(Module):
    """The module that says what this part is and how other clocks differ, gives its logs, and ends it."""

    config: ModuleConfig
    echoes: In[ClockEcho] = In(queue=64)
    own_echo: Out[ClockEcho]

    def __init__(self, part: Part, end: Callable[[], None], run_dir: Path | None) -> None:
        """``end`` begins to end this part of the run."""
        context = RunContext(namespace=f"{part.machine}/", run_dir=run_dir)
        super().__init__(ModuleConfig(), name=part_name(part.machine), context=context)
        self.ready = False
        self._part, self._end = part, end
        self._offsets = ClockOffsets(part.machine)
        self._clocks: dict[str, ClockOffset] = {}

    @property
    def clocks(self) -> dict[str, ClockOffset]:
        """The offsets by which the other machines' clocks are ahead, as far as they were measured."""
        return dict(self._clocks)

    @property
    def topics(self) -> dict[str, str]:
        """The topics of its streams."""
        return {"echoes": CLOCKS, "own_echo": CLOCKS}

    async def start(self) -> None:
        """Say which part this is."""
        self.echoes.on_message(self._hear)
        self.report()

    async def run(self) -> None:
        """Send the clock of this machine, the first few times in quick succession."""
        number = 0
        while True:
            self.own_echo.publish(self._offsets.echo(clock.utime()))
            number += 1
            await asyncio.sleep(_FIRST_EVERY_S if number < _FIRST_ECHOES else _EVERY_S)

    def report(self) -> None:
        """Report the state of the part, if it has changed."""
        part = self._part
        state = PartState(
            machine=part.machine,
            machines=part.machines,
            blueprint=part.blueprint,
            digest=part.digest,
            version=part.version,
            modules=part.own if len("".join(part.own)) <= _MOST_NAMES else (),
            ready=self.ready,
            clocks=self._clocks,
        )
        names = (part.machine, *part.machines, part.blueprint, part.digest, *part.own)
        self.report_state({PART: state.model_dump(mode="json")}, names=names)

    def _hear(self, echo: ClockEcho) -> None:
        if echo.machine not in self._part.machines:  # those that are invented would fill the table
            return
        self._offsets.hear(echo, clock.utime())
        measured = dict(self._offsets.offsets())
        if any(_says_more(offset, self._clocks.get(name)) for name, offset in measured.items()):
            self._clocks = measured
            self.report()

    @skill(audience="operator", read_only=True, polling=True)
    async def logs(self, process: str = "", offset: int = -1) -> LogChunk:
        """Read on in the log of a process of this part, for operators' tools.

        Args:
            process: its label as its log is called; empty names all that there are.
            offset: the byte to begin at; -1 for the newest lines.
        """
        run_dir = self.context.run_dir
        if run_dir is None:
            raise SkillError("this run writes no logs")
        if not process:
            return LogChunk(processes=names_of(run_dir))
        return await self.run_blocking(read_chunk, run_dir, process, offset)

    @skill(audience="operator")
    async def stop_part(self, call: Call) -> str:
        """End this part of the run, as `stop` on its machine does."""
        asyncio.get_running_loop().call_later(_ANSWER_FIRST_S, self._end)
        return f"the part on {self._part.machine} is stopping"


def _says_more(new: ClockOffset, old: ClockOffset | None) -> bool:
    """Return whether a measurement is worth a heartbeat: much more precise, or a different offset."""
    if old is None:
        return True
    return 2 * new.within_us < old.within_us or abs(new.ahead_us - old.ahead_us) > max(SLACK_US, old.within_us)
