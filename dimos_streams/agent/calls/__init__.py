"""The agent's open skill calls: begun, read, ended; and the catalog of skills it may call."""
