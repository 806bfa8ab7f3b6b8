"""Runs of blueprints: a process per module, all in one process, or in virtual time."""
