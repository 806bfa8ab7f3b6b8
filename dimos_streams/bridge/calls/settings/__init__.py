"""Live settings as calls: what was ordered, and what is owed to modules that did not answer."""
