"""The parts of a run, one on each machine, as their heartbeats describe them."""

from __future__ import annotations

from dimos_streams import clock
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from dimos_streams.tool_stream.liveness.module_view import ModuleView
from dimos_streams.tool_stream.liveness.part_state import PartState, part_name, part_state

_LOOK_EVERY_S = 0.5


class PartView(FrozenModel):
    """A part as others see it."""

    state: PartState
    alive: bool
    silent_s: float
    host: str


def part_of_view(view: ModuleView) -> PartView | None:
    """Return the part that a module speaks for, or None if it speaks for none."""
    state = part_state(view)
    return None if state is None else PartView(state=state, alive=view.alive, silent_s=view.age_s, host=view.host)


def part_on(directory: ModuleDirectory, machine: str) -> PartView | None:
    """Return the part of a machine, or None if it was never heard."""
    view = directory.module(part_name(machine))
    return None if view is None else part_of_view(view)


class MachineClocks:
    """The differences between machines' clocks, as their parts report them; a service of each process
    (``module.Clocks``)."""

    def __init__(self, directory: ModuleDirectory) -> None:
        self._directory = directory
        self._known: dict[tuple[str, str], tuple[float, int | None]] = {}

    def ahead_us(self, of: str, than: str) -> int | None:
        """See ``Clocks``. What was measured holds on while a link is cut."""
        now = clock.monotonic()
        looked, ahead = self._known.get((of, than), (float("-inf"), None))
        if now - looked >= _LOOK_EVERY_S:
            ahead = self._measured(of, than)
            self._known[of, than] = now, ahead
        return ahead

    def _measured(self, of: str, than: str) -> int | None:
        for machine, other, sign in ((than, of, 1), (of, than, -1)):
            part = part_on(self._directory, machine)
            if part is not None and other in part.state.clocks:
                return sign * part.state.clocks[other].ahead_us
        return None
