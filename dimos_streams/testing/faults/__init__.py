"""Faults for tests: a bus that misbehaves, processes that use it, and a part of a run that crashes."""
