"""The options of a run besides its blueprint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path

from dimos_streams.bus import Bus, bus_url
from dimos_streams.common.process.loopback import BRIDGE_HOST, BRIDGE_PORT, authority_here
from dimos_streams.common.process.run_owner import run_id_of
from dimos_streams.common.secrets import checked, know
from dimos_streams.errors import UserError
from dimos_streams.module import LOSS_BOUND_S


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options that hold for all modules of a run."""

    bus_url: str = field(default_factory=bus_url)
    host: str = BRIDGE_HOST
    """The address on which the bridge serves."""
    port: int = BRIDGE_PORT
    """The TCP port of the bridge."""
    seed: int = 0
    token: str | None = None
    run_dir: Path | None = None
    """The directory for logs, pictures and the journal, which must exist; None if the run leaves no files."""
    hang_bound_s: float = 10.0
    """The time, in seconds, after which a process whose loop has not run counts as failed: it is killed, and
    restarted by its policy."""
    loss_bound_s: float = LOSS_BOUND_S
    """See ``RunContext``."""
    bridge: str = ""
    """The URL of the bridge that another machine runs; empty if the bridge is this run's own."""
    machine: str = ""
    """The name of this machine, if the blueprint has several."""
    stamped_on: Mapping[str, str] = field(default_factory=dict)
    """See ``RunContext``."""
    agents: frozenset[str] = frozenset()
    """The names of agents that run elsewhere too, if the blueprint has several machines."""
    wrap_bus: Callable[[Bus, str], Bus] | None = None
    """A function that makes the bus that a process uses, of the real one and the process's label, for tests with
    faults: ``dimos_streams.testing.FaultInjection``. Must be picklable; closing its bus need not close the real
    one."""

    def __post_init__(self) -> None:
        """Raise ``UserError`` for a token that no header can carry, for what is no seed, and for faults that are no
        function."""
        if not isinstance(self.seed, Integral):
            raise UserError(f"the seed of the run is {self.seed!r}: it must be a whole number")
        if self.seed < 0:
            raise UserError(f"the seed of the run is {self.seed}: it must be at least 0")
        if self.wrap_bus is not None and not callable(self.wrap_bus):
            wanted = "a function that makes a bus of a bus, as FaultInjection(Faults(loss=0.1)) is"
            raise UserError(f"the faults of the run are {self.wrap_bus!r}: they must be {wanted}")
        if self.token is not None:
            know(checked(self.token, "the token of the run"))

    @property
    def bridge_url(self) -> str:
        """The URL at which the bridge answers."""
        return self.bridge or f"http://{authority_here(self.host, self.port)}"

    @property
    def log_selector(self) -> str | None:
        """The arguments with which `dimos-streams logs` shows the run's logs; None if it leaves no files."""
        if self.run_dir is None:
            return None
        return f"--machine {self.machine}" if self.machine else run_id_of(self.run_dir)
