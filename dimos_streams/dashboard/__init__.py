"""The operators' page: its files, and how they are served. The package knows no bridge."""
