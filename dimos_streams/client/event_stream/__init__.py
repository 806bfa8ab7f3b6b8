"""The parts of a client of server-sent events: its request, its bytes, their events, and the way to the loop."""
