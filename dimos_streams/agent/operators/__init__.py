"""The operators' side of an agent: its skills for them, what they say to it, and how they see it."""
