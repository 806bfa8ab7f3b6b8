"""LCM logs: written, read, cut, exported and played back."""
