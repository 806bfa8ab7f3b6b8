"""Database engines of a hub's storage: SQLite and PostgreSQL, with their connections, errors and URLs."""
