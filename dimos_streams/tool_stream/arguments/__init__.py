"""Arguments of calls: checked against the schemas of skills, and completed with their defaults."""
