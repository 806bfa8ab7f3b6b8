"""The hub's page: robots and their state."""
