"""Heartbeats: which modules are alive, as which instance, and what skills they offer."""
