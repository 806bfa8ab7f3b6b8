"""A live run: its supervisor, the slot of each module's process, and how these are replaced, reloaded and ended."""
