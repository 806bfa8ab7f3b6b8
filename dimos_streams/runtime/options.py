"""What a run needs to know besides its blueprint."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from dimos_streams.bus import bus_url

DEFAULT_PORT = 7780


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options that hold for all modules of a run."""

    bus_url: str = field(default_factory=bus_url)
    port: int = DEFAULT_PORT
    """TCP port of the bridge, on 127.0.0.1."""
    seed: int = 0
    token: str | None = None
    run_dir: Path | None = None
    """Where logs, pictures and the journal go; must exist. None: the run leaves no files."""

    @property
    def bridge_url(self) -> str:
        """Where the bridge answers."""
        return f"http://127.0.0.1:{self.port}"
