"""Middleware for robots whose skills talk back."""

__version__ = "0.1.0"
