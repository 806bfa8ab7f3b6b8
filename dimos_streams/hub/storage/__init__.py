"""The storage of a hub, in SQLite or PostgreSQL."""
