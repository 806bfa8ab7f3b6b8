"""The operators' page: its files, and how they are served. It imports nothing of a bridge."""
