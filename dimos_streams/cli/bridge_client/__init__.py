"""A run as commands reach it: its bridge, the events of calls, calls of skills and operators' commands."""
