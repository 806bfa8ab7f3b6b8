"""What a check of ``doctor`` finds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding of one check."""

    name: str
    severity: Literal["ok", "warning", "error"]
    text: str
    commands: tuple[str, ...] = ()
    """Would mend it."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)
