"""The log of a replay as far as it was read: its tally, calls that began before it, unreadable messages."""
