"""Fixtures of the bridge's tests."""

from tests.bridge.journals import opened

__all__ = ["opened"]
