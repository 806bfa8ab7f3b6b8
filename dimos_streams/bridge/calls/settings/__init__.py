"""Live settings as calls: what was ordered, and what is owed to who did not answer."""
