"""The data of an agent's events: a type for each kind, or each phase of one, by which they are logged and read."""
