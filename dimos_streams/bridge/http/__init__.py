"""The HTTP surface of a bridge: its routes, health and metrics."""
