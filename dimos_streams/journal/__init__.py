"""The journal: every event at its offset, kept in SQLite and broadcast to readers."""
