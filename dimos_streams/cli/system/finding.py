"""The finding of a check of ``doctor``."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding of one check."""

    name: str
    severity: Literal["ok", "warning", "error"]
    text: str
    commands: tuple[str, ...] = ()
    """The commands that would mend it."""

    def to_dict(self) -> dict[str, Any]:
        """Return the finding for JSON."""
        return asdict(self)


def installing(extra: str) -> str:
    """Return the command that installs an extra beside the Python that runs."""
    return f"{shlex.quote(sys.executable)} -m pip install 'dimos-streams[{extra}]'"
