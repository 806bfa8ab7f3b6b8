"""The operators' side of an agent: what they say to it, and how they see it."""
