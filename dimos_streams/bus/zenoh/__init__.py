"""Zenoh: the bus, its URL and keys, and tokens that vanish with their process."""
