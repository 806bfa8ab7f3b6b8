"""``WS /live``: topics of the bus as they come, for clients that watch them."""
