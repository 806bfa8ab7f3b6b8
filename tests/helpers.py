"""What several test files share."""

from __future__ import annotations

from dimos_streams.clock import run_virtual

__all__ = ["run_virtual"]
