"""Dates as people read them, of times that came from outside."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_text(utime: int) -> str:
    """Return ``"2026-11-22 20:12:19 UTC"`` for µs since the Unix epoch, or the number itself if it is not a date."""
    try:
        return f"{datetime.fromtimestamp(utime / 1e6, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):  # damaged logs have times of any year
        return f"{utime} µs, which is no date"
