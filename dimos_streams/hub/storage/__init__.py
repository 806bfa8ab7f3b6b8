"""What a hub keeps, in SQLite or PostgreSQL."""
