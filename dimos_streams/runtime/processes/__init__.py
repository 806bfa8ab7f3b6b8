"""Processes of a live run: one as the supervisor holds it, its own side, and what it prints."""
