"""``WS /live``: topics of the bus as they come, for those who look."""
