"""The context of a module: the run that it is part of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dimos_streams.common.process.loopback import BRIDGE_PORT
from dimos_streams.common.secrets import know
from dimos_streams.module.services import Services

LOSS_BOUND_S = 2.0


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """The facts that a module may know of the run that it is part of."""

    seed: int = 0
    namespace: str = ""
    """Prefix of the module's topics and resources, ``"robot1/"`` or empty."""
    bridge_url: str = f"http://127.0.0.1:{BRIDGE_PORT}"
    token: str | None = None
    """The token that the bridge asks of every request, or None if it asks for none."""
    run_dir: Path | None = None
    """A directory for the run's files (logs, pictures, journal), or None if nothing may be written."""
    loss_bound_s: float = LOSS_BOUND_S
    """The time in s after which a moving call that nobody has acknowledged is ended, unless its caller wants it to go
    on."""
    robot: tuple[str, ...] = ()
    """Names of the modules of its robot (its outermost namespace) that begin together with it, in other processes;
    empty if all run on one loop, and after a restart."""
    stamped_on: Mapping[str, str] = field(default_factory=dict)
    """The machine whose clock stamps the messages of a topic, by topic, where the run has several machines."""
    channels: Mapping[str, str] = field(default_factory=dict)
    """The channels that anything in the run publishes on, or that its blueprint says come from outside, as they were
    when it began: each with its namespace, empty for none. Only modules that ask for them (``sees_channels``) get
    them."""
    agents: frozenset[str] = frozenset()
    """The names of the blueprint's agents, on all machines, whether they have been heard or not."""
    port_is_kept: bool = False
    """True if the run keeps the port that the module ``listens_at``: who listens there says so to
    ``listening_socket``."""
    is_replaced: Callable[[], bool] = lambda: False
    """Returns, to a module that stops, whether another process of it begins once this one has ended."""
    services: Services = field(default_factory=Services)

    def __post_init__(self) -> None:
        know(self.token)
