"""The commands for LCM logs: they need no run."""
