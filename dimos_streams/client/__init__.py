"""Clients of a bridge: over HTTP and server-sent events, or within one process."""
